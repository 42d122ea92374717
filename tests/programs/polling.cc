// The same with what C++ has for it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

static std::atomic<bool> ready{false};
static std::atomic<int> held{1};
static std::mutex mutex;
static bool done = false;
static int shared = 0;

static void flag() {
    while (!ready.load(std::memory_order_acquire)) {
        std::this_thread::yield();
    }
}

static bool finished() {
    std::lock_guard<std::mutex> guard(mutex);
    return done;
}

static void under_mutex() {
    while (!finished()) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

static void own_lock() {
    while (held.exchange(1) != 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    shared++;
    held.store(0);
}

int main() {
    std::thread a(flag), b(under_mutex), c(own_lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ready = true;
    {
        std::lock_guard<std::mutex> guard(mutex);
        done = true;
    }
    held.store(0);
    a.join();
    b.join();
    c.join();
    std::printf("%d\n", shared);
    return 0;
}
