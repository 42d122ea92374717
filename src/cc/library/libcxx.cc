// What of libc++ lies in its shared library and works on data that the program's own code reads, too: the last
// steps of weak pointers, and mutexes that can be waited for for a while. The members are declared in the
// order that their places in objects and tables hang on.

#include <pthread.h>

namespace std {

class type_info;

inline namespace __1 {

class __shared_count {
public:
    long owners;

    virtual ~__shared_count();

private:
    virtual void __on_zero_shared() noexcept = 0;
};

class __shared_weak_count : private __shared_count {
public:
    long weak_owners;

    virtual ~__shared_weak_count();
    void __release_weak() noexcept;
    __shared_weak_count *lock() noexcept;
    virtual const void *__get_deleter(const type_info &) const noexcept;

private:
    virtual void __on_zero_shared_weak() noexcept = 0;
};

// Both counts are one less than there are owners.

void __shared_weak_count::__release_weak() noexcept
{
    if (__atomic_load_n(&weak_owners, __ATOMIC_ACQUIRE) == 0
        || __atomic_fetch_sub(&weak_owners, 1, __ATOMIC_ACQ_REL) == 0)
        __on_zero_shared_weak();
}

__shared_weak_count *__shared_weak_count::lock() noexcept
{
    long known = __atomic_load_n(&owners, __ATOMIC_SEQ_CST);
    while (known != -1)
        if (__atomic_compare_exchange_n(&owners, &known, known + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return this;
    return nullptr;
}

class timed_mutex {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    bool taken;

public:
    void lock();
    bool try_lock() noexcept;
    void unlock() noexcept;
};

void timed_mutex::lock()
{
    pthread_mutex_lock(&mutex);
    while (taken)
        pthread_cond_wait(&freed, &mutex);
    taken = true;
    pthread_mutex_unlock(&mutex);
}

bool timed_mutex::try_lock() noexcept
{
    if (pthread_mutex_trylock(&mutex) != 0)
        return false;
    bool found = taken;
    if (!found)
        taken = true;
    pthread_mutex_unlock(&mutex);
    return !found;
}

void timed_mutex::unlock() noexcept
{
    pthread_mutex_lock(&mutex);
    taken = false;
    pthread_cond_signal(&freed);
    pthread_mutex_unlock(&mutex);
}

class recursive_timed_mutex {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    unsigned long count;
    pthread_t owner;

public:
    void lock();
    bool try_lock() noexcept;
    void unlock() noexcept;
};

void recursive_timed_mutex::lock()
{
    pthread_t me = pthread_self();
    pthread_mutex_lock(&mutex);
    if (count == 0 || owner != me) {
        while (count != 0)
            pthread_cond_wait(&freed, &mutex);
        owner = me;
    }
    count++;
    pthread_mutex_unlock(&mutex);
}

bool recursive_timed_mutex::try_lock() noexcept
{
    pthread_t me = pthread_self();
    if (pthread_mutex_trylock(&mutex) != 0)
        return false;
    bool free = count == 0 || owner == me;
    if (free) {
        owner = me;
        count++;
    }
    pthread_mutex_unlock(&mutex);
    return free;
}

void recursive_timed_mutex::unlock() noexcept
{
    pthread_mutex_lock(&mutex);
    if (--count == 0) {
        owner = 0;
        pthread_cond_signal(&freed);
    }
    pthread_mutex_unlock(&mutex);
}

}
}
