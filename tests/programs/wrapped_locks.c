#include "wrapped_locks.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct lock {
    pthread_mutex_t mutex;
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
