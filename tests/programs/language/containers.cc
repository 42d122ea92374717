// Lists and trees that threads share: their nodes are linked and balanced by functions of libstdc++'s
// shared library, whose accesses have to be seen.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static std::map<std::string, int> names;
static std::set<int> numbers;
static std::list<int> waiting;

static unsigned next(unsigned &seed)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

static void work(unsigned seed)
{
    for (int i = 0; i < 60; i++) {
        std::lock_guard<std::mutex> guard(lock);
        int number = next(seed) % 32;
        if (next(seed) % 3 != 0) {
            numbers.insert(number);
            names["name " + std::to_string(number)] += 1;
        } else {
            numbers.erase(number);
            names.erase("name " + std::to_string(number));
        }
        switch (next(seed) % 5) {
        case 0:
            waiting.push_front(number);
            break;
        case 1:
            waiting.push_back(number);
            break;
        case 2:
            waiting.reverse();
            break;
        case 3:
            waiting.sort();
            break;
        default:
            if (waiting.size() > 1)
                waiting.splice(waiting.begin(), waiting, std::prev(waiting.end()));
        }
    }
}

// Is a tree in order, forwards and backwards, and balanced?
static int depth(const std::_Rb_tree_node_base *node)
{
    if (node == nullptr)
        return 1;
    int left = depth(node->_M_left), right = depth(node->_M_right);
    bool red = node->_M_color == std::_S_red;
    for (auto child : {node->_M_left, node->_M_right})
        if (child != nullptr && (child->_M_parent != node || (red && child->_M_color == std::_S_red)))
            return -1000;
    return left == right ? left + !red : -1000;
}

int main()
{
    work(7);
    std::thread first(work, 1), second(work, 2);
    first.join();
    second.join();
    std::list<int> other{3, 1, 2};
    waiting.swap(other);
    std::vector<int> forwards(numbers.begin(), numbers.end());
    std::vector<int> backwards(numbers.rbegin(), numbers.rend());
    std::reverse(backwards.begin(), backwards.end());
    bool ordered = std::is_sorted(forwards.begin(), forwards.end()) && forwards == backwards;
    bool balanced = depth(numbers.end()._M_node->_M_parent) > 0;
    std::size_t linked = std::distance(other.rbegin(), other.rend());
    std::printf("%d %d %d %d\n", ordered, balanced, names.size() == numbers.size(),
                linked == other.size() && waiting.size() == 3);
    return 0;
}
