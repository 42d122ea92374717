#include "wrapped_locks.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct lock {
    pthread_mutex_t mutex;
};

struct condition {
    pthread_cond_t changed;
};

int lock_make(Lock *lock)
{
    struct lock *made = malloc(sizeof *made);
    if (made == NULL)
        return ENOMEM;
    *lock = made;
    return pthread_mutex_init(&made->mutex, NULL);
}

int lock_take(Lock *lock)
{
    if (lock == NULL || *lock == NULL)
        return EINVAL;
    struct lock *it = *lock;
    return pthread_mutex_lock(&it->mutex);
}

int lock_give(Lock *lock)
{
    if (lock == NULL || *lock == NULL)
        return EINVAL;
    struct lock *it = *lock;
    return pthread_mutex_unlock(&it->mutex);
}

int condition_make(Condition *condition)
{
    struct condition *made = malloc(sizeof *made);
    if (made == NULL)
        return ENOMEM;
    *condition = made;
    return pthread_cond_init(&made->changed, NULL);
}

int condition_await(Condition *condition, Lock *lock, long milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    long nanoseconds = until.tv_nsec + milliseconds * 1000000;
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    struct lock *it = *lock;
    return pthread_cond_timedwait(&(*condition)->changed, &it->mutex, &until);
}
