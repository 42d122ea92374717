// As inputs.c, with what C++ has for times and random numbers. The updates of the counter are not
// protected.
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>
#include <unistd.h>

using Steady = std::chrono::steady_clock;
using System = std::chrono::system_clock;

static int counter;

static void add_once(int by) {
    int seen = counter;
    std::this_thread::yield();
    counter = seen + by;
}

static void add_twice(int by) {
    int seen = counter;
    std::this_thread::yield();
    counter = seen + by;
    counter = counter + by;
}

static void count(bool at_once) {
    for (int i = 0; i < 3; i++)
        if (at_once)
            add_once(2);
        else
            add_twice(1);
}

int main() {
    std::random_device device;
    unsigned random = device();
    Steady::time_point begin = Steady::now();
    long day = System::now().time_since_epoch().count();
    bool first = ((begin.time_since_epoch().count() / 7) ^ (day / 11) ^ random) & 1;

    std::mutex mutex;
    std::condition_variable condition;
    bool ready = false;
    std::thread one([&] {
        count(first);
        std::lock_guard<std::mutex> lock(mutex);
        ready = true;
        condition.notify_all();
    });
    std::thread two([&] { count(!first); });
    bool came;
    {
        // The deadline comes from a time that was long ago, but it is not over.
        std::unique_lock<std::mutex> lock(mutex);
        came = condition.wait_for(lock, std::chrono::seconds(30), [&] { return ready; });
    }
    one.join();
    two.join();
    if (!came)
        return 3;
    // Not recorded before the failure: the clock goes on from the recorded times.
    std::printf("I am %d %ld %u\n", static_cast<int>(getpid()), day, random);
    std::fflush(stdout);
    if (first)
        assert(counter == 12);
    else
        assert(12 == counter);
    Steady::duration took = Steady::now() - begin;
    return took < Steady::duration::zero() || took > std::chrono::hours(1) ? 4 : 0;
}
