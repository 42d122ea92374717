// The standard library in threads: containers, strings, streams, regular expressions.
//~ FLAGS: -std=c++17
//~ GAP: memory that uninstrumented code wrote
//~ GAP: value of load differs from the log
#include <cstdio>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

static std::mutex lock;
static std::map<std::string, int> counts;
static std::unordered_map<std::string, std::vector<int>> places;
static std::deque<std::string> queue;
static std::list<int> list;
static std::set<int> ordered;
static std::shared_ptr<std::string> shared = std::make_shared<std::string>("shared");

static void work(int id, const std::string &text) {
    std::istringstream words(text);
    std::string word;
    int position = 0;
    while (words >> word) {
        std::lock_guard<std::mutex> hold(lock);
        counts[word]++;
        places[word].push_back(++position);
        queue.push_back(word + "/" + std::to_string(id));
        if (queue.size() > 6) {
            queue.pop_front();
        }
        list.push_front(static_cast<int>(word.size()));
        ordered.insert(position * 7 % 5);
    }
    std::ostringstream line;
    line << std::setw(6) << std::setfill('*') << position << ' ' << std::hex << 255 << ' '
         << std::fixed << std::setprecision(3) << 2.5 * position;
    std::shared_ptr<std::string> copy = shared;
    std::lock_guard<std::mutex> hold(lock);
    *copy += line.str();
}

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Named : virtual Shape {
    std::string name = "named";
};
struct Sized : virtual Shape {
    double side = 2;
};
struct Square : Named, Sized {
    double area() const override { return side * side + static_cast<double>(name.size()); }
};

int main() {
    std::thread one(work, 1, "the cat and the dog and the bird");
    one.join();
    std::thread two(work, 2, "a dog is not a cat");
    two.join();
    for (const auto &[word, count] : counts) {
        std::cout << word << '=' << count << ' ';
    }
    std::cout << '\n' << queue.front() << ' ' << queue.back() << ' ' << list.size() << ' '
              << ordered.size() << ' ' << places["the"].size() << ' ' << *shared << std::endl;
    std::regex pattern("([a-z]+)-([0-9]+)");
    std::smatch match;
    std::string subject = "order-66 executed";
    if (std::regex_search(subject, match, pattern)) {
        std::cout << match[1] << ' ' << match[2] << '\n';
    }
    std::variant<int, std::string> either = std::string("text");
    std::optional<int> maybe;
    std::visit([](const auto &value) { std::cout << value << '\n'; }, either);
    std::function<int(int)> add = [&maybe](int value) {
        maybe = value + 1;
        return *maybe;
    };
    std::unique_ptr<Shape> shape = std::make_unique<Square>();
    std::tuple<int, double> pair(add(4), shape->area());
    std::cout << std::get<0>(pair) << ' ' << std::get<1>(pair) << ' ' << maybe.value_or(-1) << '\n';
    return counts["the"] == 3 ? 0 : 1;
}
