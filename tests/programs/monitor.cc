// Two threads wait at a monitor for a third one, which wakes one of them.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

class Monitor {
    struct Impl {
        std::timed_mutex mutex;
        std::condition_variable_any changed;
        void wait() { changed.wait(mutex); }
        void notify() { changed.notify_one(); }
    };
    Impl *impl_ = new Impl;

public:
    void lock() { impl_->mutex.lock(); }
    void unlock() { impl_->mutex.unlock(); }
    void wait() { impl_->wait(); }
    void notify();
};

void Monitor::notify() { impl_->notify(); }

static bool open;

static void pass(Monitor *door)
{
    door->lock();
    while (!open)
        door->wait();
    door->unlock();
}

static void unlock_all(Monitor &door)
{
    door.lock();
    open = true;
    door.notify();
    door.unlock();
}

int main()
{
    Monitor door;
    std::thread one(pass, &door), other(pass, &door);
    usleep(300000);
    unlock_all(door);
    one.join();
    other.join();
    return 0;
}
