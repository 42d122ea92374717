// Lines that a stream made, short ones and long ones, go through a queue to whoever parses them. The lowest and the highest
// price are published in two steps, and somebody who looks at them between finds the lowest one above the highest.
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <sstream>
#include <string>
#include <thread>

struct Range {
    long low = 1, high = 2;
};

static std::mutex lock;
static std::condition_variable ready;
static std::queue<std::string> lines;
static Range range;
static const long opening = 3000;
static std::atomic<bool> done{false};

static void parse() {
    for (;;) {
        std::string line, field;
        {
            std::unique_lock<std::mutex> guard(lock);
            ready.wait(guard, [] { return !lines.empty(); });
            line = std::move(lines.front());
            lines.pop();
        }
        long price = 0;
        for (char c : line) {
            if (c == '|') {
                price = std::stol(field);
                field.clear();
            } else {
                field.push_back(c);
            }
        }
        if (price < 0) break;
        if (price < opening) continue;
        range.low = price;
        range.high = price + 1;
    }
    done = true;
}

static void look() {
    while (!done) {
        long low = range.low, high = range.high;
        assert(low < high);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

int main() {
    std::thread parser(parse), looker(look);
    for (int i = 1; i <= 60; ++i) {
        std::ostringstream line;
        line << (i == 60 ? -1 : 100 * i) << '|' << (i % 2 ? "x" : "a text that is long");
        std::lock_guard<std::mutex> guard(lock);
        lines.push(line.str());
        ready.notify_one();
    }
    parser.join();
    looker.join();
}
