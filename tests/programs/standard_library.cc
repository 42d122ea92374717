/* What C++ programs of every day use: containers, strings, streams, smart pointers, threads, futures.
 * Every result is checked; the exit status says which check failed. */
#include <atomic>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
static std::shared_mutex sm;
static std::unordered_map<std::string, int> um;
static std::atomic<bool> go{false};
static std::recursive_mutex rm;
thread_local int tl = 3;
static void rd(int id)
{
    while (!go.load())
        std::this_thread::yield();
    std::shared_lock<std::shared_mutex> l(sm);
    tl += id;
    auto it = um.find("k2");
    if (it != um.end() && it->second != 2)
        std::abort();
}
static void wr(int id)
{
    while (!go.load())
        std::this_thread::yield();
    std::unique_lock<std::shared_mutex> l(sm);
    um["k" + std::to_string(id)] = id;
    std::lock_guard<std::recursive_mutex> a(rm);
    std::lock_guard<std::recursive_mutex> b(rm);
}
int main()
{
    std::list<int> l{3, 1, 2};
    l.sort();
    l.push_front(0);
    int s = 0;
    for (int x : l)
        s = s * 10 + x;
    if (s != 123)
        return 1;
    std::set<int> st;
    for (int i = 0; i < 40; i++)
        st.insert((i * 37) % 41);
    if (st.size() != 40 || *st.begin() != 0)
        return 2;
    for (int i = 0; i < 20; i++)
        st.erase(i);
    if (st.size() != 21)
        return 3;
    std::deque<long> d;
    for (int i = 0; i < 300; i++) {
        d.push_back(i);
        if (i % 3 == 0)
            d.pop_front();
    }
    if (d.front() != 100)
        return 4;
    std::priority_queue<int> pq;
    for (int i : {5, 2, 8})
        pq.push(i);
    if (pq.top() != 8)
        return 5;
    std::shared_ptr<int> sp = std::make_shared<int>(5);
    std::weak_ptr<int> wp = sp;
    {
        auto q = wp.lock();
        *q += 1;
    }
    if (*sp != 6)
        return 6;
    std::ostringstream os;
    os << "a" << 12 << ' ' << 1.5;
    if (os.str() != "a12 1.5")
        return 7;
    std::string sub = os.str().substr(1, 2);
    if (std::stoi(sub) != 12)
        return 8;
    std::vector<std::string> vs;
    for (int i = 0; i < 20; i++)
        vs.push_back(std::string(i, 'a' + i));
    if (vs[19].size() != 19)
        return 9;
    std::vector<std::thread> ts;
    for (int i = 0; i < 3; i++) {
        ts.emplace_back(rd, i);
        ts.emplace_back(wr, i);
    }
    std::string all;
    const std::string common = "and ";
    for (int i = 0; i < 2; i++)
        ts.emplace_back([&all, &common, i] {
            for (int j = 0; j < 3; j++) {
                std::lock_guard<std::recursive_mutex> l(rm);
                all += i ? "one" : "other";
                all.push_back(' ');
                all.append(common).append(2, '.').append("!?", 1);
                if (all.back() != '!')
                    std::abort();
            }
        });
    go = true;
    for (auto &t : ts)
        t.join();
    if (um.size() != 3)
        return 10;
    if (all.size() != 3 * (11 + 13))
        return 12;
#ifdef __OPTIMIZE__
    // Without optimisation the callable of std::call_once, which std::async uses, passes through a
    // thread-local variable of the library, which counts as a gap (docs/limits.md).
    auto f = std::async(
        std::launch::async, [](int x) { return x * 2; }, 21);
    if (f.get() != 42)
        return 11;
#endif
    std::cout << "done " << s << std::endl;
    return 0;
}
