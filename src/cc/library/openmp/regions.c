/* Constructs in a parallel region: barriers, critical sections, single and master, reductions. */

#include "openmp.h"

ENTRY void __kmpc_barrier(struct place *place, int32_t gtid) { symbiosis_omp_wait(symbiosis_omp_me()); }

ENTRY int32_t __kmpc_cancel_barrier(struct place *place, int32_t gtid)
{
    symbiosis_omp_wait(symbiosis_omp_me());
    return 0;
}

/* Cancellation is off unless the environment asks for it, and here in any case. */
ENTRY int32_t __kmpc_cancel(struct place *place, int32_t gtid, int32_t kind) { return 0; }

ENTRY int32_t __kmpc_cancellationpoint(struct place *place, int32_t gtid, int32_t kind) { return 0; }

ENTRY int32_t __kmpc_barrier_master(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    symbiosis_omp_wait(me);
    return me->number == 0;
}

ENTRY void __kmpc_end_barrier_master(struct place *place, int32_t gtid) { symbiosis_omp_wait(symbiosis_omp_me()); }

ENTRY int32_t __kmpc_barrier_master_nowait(struct place *place, int32_t gtid)
{
    return __kmpc_barrier_master(place, gtid);
}

ENTRY void __kmpc_flush(struct place *place) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* The compiler's object for a critical section is of zeros, as an unlocked mutex is, and has room for
 * all of one but what only robust ones use. */
static pthread_mutex_t *mutex_of(critical_name *name) { return (pthread_mutex_t *)name; }

_Static_assert(sizeof(critical_name) >= offsetof(pthread_mutex_t, __data.__list), "no room for a mutex");

ENTRY void __kmpc_critical(struct place *place, int32_t gtid, critical_name *name)
{
    pthread_mutex_lock(mutex_of(name));
}

ENTRY void __kmpc_critical_with_hint(struct place *place, int32_t gtid, critical_name *name, uint32_t hint)
{
    pthread_mutex_lock(mutex_of(name));
}

ENTRY void __kmpc_end_critical(struct place *place, int32_t gtid, critical_name *name)
{
    pthread_mutex_unlock(mutex_of(name));
}

ENTRY int32_t __kmpc_master(struct place *place, int32_t gtid) { return symbiosis_omp_me()->number == 0; }

ENTRY void __kmpc_end_master(struct place *place, int32_t gtid) {}

ENTRY int32_t __kmpc_masked(struct place *place, int32_t gtid, int32_t filter)
{
    return symbiosis_omp_me()->number == filter;
}

ENTRY void __kmpc_end_masked(struct place *place, int32_t gtid) {}

ENTRY void __kmpc_scope(struct place *place, int32_t gtid, void *reserved) {}

ENTRY void __kmpc_end_scope(struct place *place, int32_t gtid, void *reserved) {}

ENTRY int32_t __kmpc_single(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    uint32_t before = me->singles++;
    if (me->team->size == 1)
        return 1;
    return __atomic_compare_exchange_n(&me->team->singles, &before, before + 1, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

ENTRY void __kmpc_end_single(struct place *place, int32_t gtid) {}

ENTRY void __kmpc_copyprivate(struct place *place, int32_t gtid, size_t size, void *data,
                              void (*copy)(void *, void *), int32_t did_it)
{
    struct thread *me = symbiosis_omp_me();
    if (did_it)
        me->team->copied = data;
    symbiosis_omp_wait(me);
    if (!did_it)
        copy(data, me->team->copied);
    symbiosis_omp_wait(me);
}

/* Every thread adds what it has, one after the other. */
static int32_t reduce(critical_name *name)
{
    if (symbiosis_omp_me()->team->size > 1)
        pthread_mutex_lock(mutex_of(name));
    return 1;
}

ENTRY int32_t __kmpc_reduce_nowait(struct place *place, int32_t gtid, int32_t count, size_t size, void *data,
                                   void (*function)(void *, void *), critical_name *name)
{
    return reduce(name);
}

ENTRY void __kmpc_end_reduce_nowait(struct place *place, int32_t gtid, critical_name *name)
{
    if (symbiosis_omp_me()->team->size > 1)
        pthread_mutex_unlock(mutex_of(name));
}

ENTRY int32_t __kmpc_reduce(struct place *place, int32_t gtid, int32_t count, size_t size, void *data,
                            void (*function)(void *, void *), critical_name *name)
{
    return reduce(name);
}

ENTRY void __kmpc_end_reduce(struct place *place, int32_t gtid, critical_name *name)
{
    struct thread *me = symbiosis_omp_me();
    if (me->team->size > 1)
        pthread_mutex_unlock(mutex_of(name));
    symbiosis_omp_wait(me);
}

/* What a thread has of a variable that the compiler keeps no thread-local one for. */
struct copies {
    struct copies *next;
    void *data;
    void *of[1024];
};

ENTRY void *__kmpc_threadprivate_cached(struct place *place, int32_t gtid, void *data, size_t size, void ***cache)
{
    int number = symbiosis_omp_me()->gtid;
    struct copies *copies = __atomic_load_n((struct copies **)cache, __ATOMIC_SEQ_CST);
    if (number == 0)
        return data;
    if (number >= 1024)
        symbiosis_omp_complain("more than 1024 threads use a threadprivate variable");
    if (copies == NULL) {
        struct copies *made = calloc(1, sizeof *made);
        if (made == NULL)
            symbiosis_omp_complain("out of memory");
        if (__atomic_compare_exchange_n((struct copies **)cache, &copies, made, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            copies = made;
        else
            free(made);
    }
    if (copies->of[number] == NULL) {
        copies->of[number] = malloc(size);
        if (copies->of[number] == NULL)
            symbiosis_omp_complain("out of memory");
        memcpy(copies->of[number], data, size);
    }
    return copies->of[number];
}

ENTRY void *__kmpc_threadprivate(struct place *place, int32_t gtid, void *data, size_t size)
{
    symbiosis_omp_complain("a threadprivate variable without a cache");
}
