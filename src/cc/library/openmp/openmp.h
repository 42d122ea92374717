/*
 * OpenMP's constructs, made of pthreads: the entry points that clang's code calls and those of `omp.h`.
 * Programs that `symbiosis` links get these instead of libomp's. They are instrumented like the program
 * itself, so that all that orders its threads is seen, and that replays decide about it; libomp's own
 * locks, spinning and sleeping would be neither.
 *
 * Names and types of the entry points are those of LLVM's interface (`kmp.h`), which does not change.
 */

#ifndef SYMBIOSIS_OPENMP_H
#define SYMBIOSIS_OPENMP_H

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Weak, in case that libomp is linked statically and brings its own. */
#define ENTRY __attribute__((weak, visibility("default")))

/* The compiler's words for schedules. */
enum {
    STATIC_CHUNKED = 33,
    STATIC = 34,
    DYNAMIC = 35,
    GUIDED = 36,
    RUNTIME = 37,
    AUTO = 38,
    STATIC_STEAL = 44,
    STATIC_BALANCED_CHUNKED = 45,
    GUIDED_SIMD = 46,
    RUNTIME_SIMD = 47,
    ORDERED = 64,
    DISTRIBUTE_CHUNKED = 91,
    DISTRIBUTE = 92,
    NOMERGE = 160,
    MODIFIERS = 3 << 29
};

/* Where a construct stands, as the compiler says. */
struct place {
    int32_t reserved_1, flags, reserved_2, reserved_3;
    const char *text;
};

typedef void microtask(int32_t *gtid, int32_t *bound, ...);
typedef int32_t critical_name[8];

/* One instance of a worksharing loop whose iterations are handed out while it runs. The threads of a
 * team come to its loops in the same order, each from the one before. */
struct loop {
    struct loop *next;
    /* Iterations handed out. */
    uint64_t taken;
    /* The iteration whose ordered region comes next. */
    uint64_t turn;
    /* For `ordered(n)`: which iterations were finished. */
    unsigned char *finished;
    pthread_mutex_t lock;
    pthread_cond_t moved;
};

/* A thread of a team's pool. */
struct worker {
    sem_t begin, end;
    struct team *team;
    int number, gtid;
};

/* The tasks that a thread of a team is to execute, one post of the semaphore for each. */
struct lane {
    sem_t work;
    struct task *first, *last;
    /* How many tasks the thread has made. */
    uint32_t made;
    /* In so many tasks it waits for other tasks. */
    int waits;
};

/* The threads that execute a parallel region. */
struct team {
    /* Another team of the same thread at the same depth, of another size. */
    struct team *next;
    int size;
    pthread_barrier_t barrier;
    microtask *region;
    int argument_count, argument_room;
    void **arguments;
    /* How many `single` regions have their thread. */
    uint32_t singles;
    void *copied;
    struct loop first;
    struct team *outer;
    int outer_number, level, active_level, threads_wanted;
    /* Explicit tasks: those that each thread is to execute, how many are not over, how many threads wait
     * for some change in that inside of a task, and how many have come to the barrier. */
    struct lane *lanes;
    int unfinished, waiting, arrived;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* What a thread has for regions that it begins in so many regions of its own. */
struct depth {
    struct depth *deeper;
    struct worker **workers;
    int count, room;
    struct team *teams;
};

/* The loop that a thread is in. */
struct share {
    struct loop *loop;
    int schedule;
    uint64_t first, stride, trips, chunk;
    /* Where the thread's next part begins, when no other thread has a say in that, and how far it is to the
     * one behind. */
    uint64_t next, step;
    /* The iteration that it is in. */
    uint64_t iteration;
    /* The thread has been in the ordered region of its iteration. */
    int passed;
};

/* The `ordered(n)` loops that a thread is in. */
struct sinks {
    struct loop *loop;
    int count;
    struct range *ranges;
};

/* A thread, or what is put aside of it while it is in a region of its own. */
struct thread {
    struct team *team;
    int number, gtid;
    uint32_t singles;
    /* The team's loop that the thread came to last. */
    struct loop *loop;
    struct share share;
    struct sinks sinks;
    /* The task that it executes; null until an implicit one is asked for. */
    struct task *task;
    struct group *group;
    /* The clause for the next region. */
    int clause;
    /* The setting. */
    int threads;
    struct depth *depth;
    struct thread *outer;
};

/* The settings of the whole program. */
struct settings {
    int processors, threads, dynamic, max_levels, schedule, chunk, limit;
};

extern struct settings symbiosis_omp;
/* The barrier of programs with explicit tasks, which tasks.c brings; null in others. */
extern void (*symbiosis_omp_task_barrier)(struct thread *me);

struct thread *symbiosis_omp_me(void);
void symbiosis_omp_wait(struct thread *me);
void symbiosis_omp_complain(const char *what) __attribute__((noreturn));

#endif
