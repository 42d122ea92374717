// Locks of the program's own, behind a guard of its own, in two orders. Both threads take their time between the two.
#include <pthread.h>
#include <thread>
#include <unistd.h>

#ifdef VIRTUAL
#define MAYBE_VIRTUAL virtual
#else
#define MAYBE_VIRTUAL
#endif

class Mutex {
    pthread_mutex_t impl_ = PTHREAD_MUTEX_INITIALIZER;

public:
    MAYBE_VIRTUAL void lock() { pthread_mutex_lock(&impl_); }
    MAYBE_VIRTUAL void unlock() { pthread_mutex_unlock(&impl_); }
};

class Guard {
    Mutex *held_;

public:
    explicit Guard(Mutex &mutex) : held_(&mutex) { mutex.lock(); }
    ~Guard() { held_->unlock(); }
};

struct Store {
    Mutex items_lock, log_lock;
    int items = 0, log = 0;

    void add()
    {
        Guard first(items_lock);
        usleep(200000);
        Guard second(log_lock);
        ++items, ++log;
    }

    void flush()
    {
        Guard first(log_lock);
        usleep(200000);
        Guard second(items_lock);
        items = log = 0;
    }
};

int main()
{
    Store store;
    std::thread adds([&] { store.add(); }), flushes([&] { store.flush(); });
    adds.join();
    flushes.join();
    return 0;
}
