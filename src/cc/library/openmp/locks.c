/* The locks of `omp.h`. */

#include "openmp.h"

/* A lock with an owner that may take it again. */
struct nest {
    pthread_mutex_t mutex;
    int count;
};

static void *room(size_t size)
{
    void *object = calloc(1, size);
    if (object == NULL)
        symbiosis_omp_complain("out of memory");
    return object;
}

ENTRY void omp_init_lock(pthread_mutex_t **lock)
{
    pthread_mutex_t *mutex = room(sizeof *mutex);
    pthread_mutex_init(mutex, NULL);
    *lock = mutex;
}

ENTRY void omp_init_lock_with_hint(pthread_mutex_t **lock, int hint) { omp_init_lock(lock); }

ENTRY void omp_destroy_lock(pthread_mutex_t **lock)
{
    free(*lock);
    *lock = NULL;
}

ENTRY void omp_set_lock(pthread_mutex_t **lock) { pthread_mutex_lock(*lock); }

ENTRY void omp_unset_lock(pthread_mutex_t **lock) { pthread_mutex_unlock(*lock); }

ENTRY int omp_test_lock(pthread_mutex_t **lock) { return pthread_mutex_trylock(*lock) == 0; }

ENTRY void omp_init_nest_lock(struct nest **lock)
{
    struct nest *nest = room(sizeof *nest);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&nest->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    *lock = nest;
}

ENTRY void omp_init_nest_lock_with_hint(struct nest **lock, int hint) { omp_init_nest_lock(lock); }

ENTRY void omp_destroy_nest_lock(struct nest **lock)
{
    free(*lock);
    *lock = NULL;
}

ENTRY void omp_set_nest_lock(struct nest **lock)
{
    pthread_mutex_lock(&(*lock)->mutex);
    (*lock)->count++;
}

ENTRY void omp_unset_nest_lock(struct nest **lock)
{
    (*lock)->count--;
    pthread_mutex_unlock(&(*lock)->mutex);
}

ENTRY int omp_test_nest_lock(struct nest **lock)
{
    if (pthread_mutex_trylock(&(*lock)->mutex) != 0)
        return 0;
    return ++(*lock)->count;
}
