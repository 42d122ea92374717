/* Parallel regions and their threads. */

#include "openmp.h"
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* The most arguments of a region. */
enum { MOST_ARGUMENTS = 64 };

__attribute__((visibility("default"))) struct settings symbiosis_omp;
__attribute__((visibility("default"))) void (*symbiosis_omp_task_barrier)(struct thread *me);
static __thread struct thread *mine;
static int next_gtid;

void symbiosis_omp_complain(const char *what)
{
    fprintf(stderr, "symbiosis: OpenMP: %s\n", what);
    abort();
}

static int number_in(const char *name, int otherwise)
{
    const char *text = getenv(name);
    if (text == NULL)
        return otherwise;
    int number = atoi(text);
    return number > 0 ? number : otherwise;
}

static int is_true(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && (*text == 't' || *text == 'T' || *text == '1' || *text == 'y' || *text == 'Y');
}

static void read_schedule(const char *text)
{
    symbiosis_omp.schedule = STATIC;
    symbiosis_omp.chunk = 0;
    if (text == NULL)
        return;
    const char *colon = strchr(text, ':');
    if (colon != NULL)
        text = colon + 1;
    const char *comma = strchr(text, ',');
    if (comma != NULL && atoi(comma + 1) > 0)
        symbiosis_omp.chunk = atoi(comma + 1);
    switch (*text) {
    case 'd': case 'D': symbiosis_omp.schedule = DYNAMIC; break;
    case 'g': case 'G': symbiosis_omp.schedule = GUIDED; break;
    case 's': case 'S': symbiosis_omp.schedule = symbiosis_omp.chunk ? STATIC_CHUNKED : STATIC; break;
    }
}

__attribute__((constructor)) static void read_settings(void)
{
    /* `record` says how many processors there are, and a replay says the same. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    symbiosis_omp.processors = number_in("SYMBIOSIS_OMP_PROCESSORS", online > 0 ? (int)online : 1);
    symbiosis_omp.threads = number_in("OMP_NUM_THREADS", symbiosis_omp.processors);
    symbiosis_omp.dynamic = is_true("OMP_DYNAMIC");
    symbiosis_omp.max_levels = number_in("OMP_MAX_ACTIVE_LEVELS", is_true("OMP_NESTED") ? 0x7fffffff : 1);
    symbiosis_omp.limit = number_in("OMP_THREAD_LIMIT", 0x7fffffff);
    read_schedule(getenv("OMP_SCHEDULE"));
}

static void *allocate(size_t size)
{
    void *object = calloc(1, size);
    if (object == NULL)
        symbiosis_omp_complain("out of memory");
    return object;
}

static struct team *new_team(int size)
{
    struct team *team = allocate(sizeof *team);
    team->size = size;
    if (size > 1)
        pthread_barrier_init(&team->barrier, NULL, (unsigned)size);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    pthread_mutex_init(&team->first.lock, NULL);
    pthread_cond_init(&team->first.moved, NULL);
    if (symbiosis_omp_task_barrier != NULL) {
        team->lanes = allocate((size_t)size * sizeof *team->lanes);
        for (int i = 0; i < size; i++)
            sem_init(&team->lanes[i].work, 0, 0);
    }
    return team;
}

/* The calling thread; one that no region made is in a team of its own. */
struct thread *symbiosis_omp_me(void)
{
    struct thread *me = mine;
    if (me != NULL)
        return me;
    me = allocate(sizeof *me);
    me->team = new_team(1);
    me->gtid = __atomic_fetch_add(&next_gtid, 1, __ATOMIC_SEQ_CST);
    me->threads = symbiosis_omp.threads;
    me->depth = allocate(sizeof *me->depth);
    mine = me;
    return me;
}

#define A(n) , a[n]
#define ARGS_0
#define ARGS_8(n) A(n) A(n + 1) A(n + 2) A(n + 3) A(n + 4) A(n + 5) A(n + 6) A(n + 7)

/* Calls a region. The functions of regions take pointers and words only; those that take fewer than
 * they get leave the others where they are. */
static void call(microtask *region, int32_t *gtid, int32_t *bound, int count, void **a)
{
    if (count == 0)
        region(gtid, bound);
    else if (count == 1)
        region(gtid, bound A(0));
    else if (count == 2)
        region(gtid, bound A(0) A(1));
    else if (count == 3)
        region(gtid, bound A(0) A(1) A(2));
    else if (count == 4)
        region(gtid, bound A(0) A(1) A(2) A(3));
    else if (count <= 8)
        region(gtid, bound ARGS_8(0));
    else if (count <= 16)
        region(gtid, bound ARGS_8(0) ARGS_8(8));
    else if (count <= 32)
        region(gtid, bound ARGS_8(0) ARGS_8(8) ARGS_8(16) ARGS_8(24));
    else
        region(gtid, bound ARGS_8(0) ARGS_8(8) ARGS_8(16) ARGS_8(24) ARGS_8(32) ARGS_8(40) ARGS_8(48) ARGS_8(56));
}

/* The thread is in a region of the team now, and has come to none of its constructs. */
static void join(struct thread *me, struct team *team, int number)
{
    me->team = team;
    me->number = number;
    me->singles = 0;
    me->loop = NULL;
    me->sinks.ranges = NULL;
    me->task = NULL;
    me->group = NULL;
    me->clause = 0;
}

/* Executes a thread's part of the team's region. */
static void execute(struct thread *me, struct team *team, int number)
{
    int32_t gtid = me->gtid, bound = 0;
    int count = team->argument_count;
    void *arguments[MOST_ARGUMENTS] = {0};
    for (int i = 0; i < count; i++)
        arguments[i] = team->arguments[i];
    join(me, team, number);
    me->threads = team->threads_wanted;
    call(team->region, &gtid, &bound, count, arguments);
    if (team->size > 1 && symbiosis_omp_task_barrier != NULL)
        symbiosis_omp_task_barrier(me);
}

/* What a thread of a pool does. */
static void *symbiosis_omp_worker(void *argument)
{
    struct worker *worker = argument;
    struct thread *me = allocate(sizeof *me);
    me->gtid = worker->gtid;
    me->depth = allocate(sizeof *me->depth);
    mine = me;
    for (;;) {
        while (sem_wait(&worker->begin) != 0) {}
        execute(me, worker->team, worker->number);
        sem_post(&worker->end);
    }
    return NULL;
}

static struct worker *new_worker(void)
{
    struct worker *worker = allocate(sizeof *worker);
    sem_init(&worker->begin, 0, 0);
    sem_init(&worker->end, 0, 0);
    worker->gtid = __atomic_fetch_add(&next_gtid, 1, __ATOMIC_SEQ_CST);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, symbiosis_omp_worker, worker);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free(worker);
        return NULL;
    }
    return worker;
}

/* Sees to it that there are so many workers; says how many there are. */
static int provide(struct depth *depth, int wanted)
{
    if (depth->room < wanted) {
        struct worker **workers = realloc(depth->workers, (size_t)wanted * sizeof *workers);
        if (workers == NULL)
            return depth->count;
        depth->workers = workers;
        depth->room = wanted;
    }
    while (depth->count < wanted) {
        struct worker *worker = new_worker();
        if (worker == NULL)
            break;
        depth->workers[depth->count++] = worker;
    }
    return depth->count < wanted ? depth->count : wanted;
}

static struct team *team_of(struct depth *depth, int size)
{
    struct team *team = depth->teams;
    while (team != NULL && team->size != size)
        team = team->next;
    if (team == NULL) {
        team = new_team(size);
        team->next = depth->teams;
        depth->teams = team;
    }
    return team;
}

static void free_loops(struct team *team)
{
    struct loop *loop = team->first.next;
    while (loop != NULL) {
        struct loop *next = loop->next;
        free(loop->finished);
        free(loop);
        loop = next;
    }
    free(team->first.finished);
    team->first.finished = NULL;
    team->first.next = NULL;
}

/* Makes a team of a thread that enters a region. */
static struct team *form(struct thread *me, int size)
{
    struct depth *depth = me->depth;
    if (size > 1)
        size = 1 + provide(depth, size - 1);
    struct team *team = team_of(depth, size);
    team->singles = 0;
    team->first.taken = 0;
    team->first.turn = 0;
    team->outer = me->team;
    team->outer_number = me->number;
    team->level = me->team->level + 1;
    team->active_level = me->team->active_level + (size > 1);
    team->threads_wanted = me->threads;
    return team;
}

/* Puts what a thread is doing aside. */
static void enter(struct thread *me, struct thread *outer)
{
    *outer = *me;
    me->outer = outer;
    struct depth *depth = me->depth;
    if (depth->deeper == NULL)
        depth->deeper = allocate(sizeof *depth);
    me->depth = depth->deeper;
}

static void leave(struct thread *me, const struct thread *outer)
{
    *me = *outer;
    me->clause = 0;
}

static int size_of_next(struct thread *me)
{
    int size = me->clause > 0 ? me->clause : me->threads;
    if (me->team->active_level >= symbiosis_omp.max_levels)
        size = 1;
    return size < symbiosis_omp.limit ? size : symbiosis_omp.limit;
}

static void fork_region(int size, int count, microtask *region, va_list list)
{
    if (count > MOST_ARGUMENTS)
        symbiosis_omp_complain("a region with more than 64 shared variables");
    struct thread *me = symbiosis_omp_me(), outer;
    struct team *team = form(me, size);
    if (team->argument_room < count) {
        free(team->arguments);
        team->arguments = allocate((size_t)count * sizeof *team->arguments);
        team->argument_room = count;
    }
    for (int i = 0; i < count; i++)
        team->arguments[i] = va_arg(list, void *);
    team->argument_count = count;
    team->region = region;
    struct worker **workers = me->depth->workers;
    for (int i = 1; i < team->size; i++) {
        workers[i - 1]->team = team;
        workers[i - 1]->number = i;
        sem_post(&workers[i - 1]->begin);
    }
    enter(me, &outer);
    execute(me, team, 0);
    leave(me, &outer);
    for (int i = 1; i < team->size; i++)
        while (sem_wait(&workers[i - 1]->end) != 0) {}
    free_loops(team);
}

ENTRY void __kmpc_fork_call(struct place *place, int32_t count, microtask *region, ...)
{
    va_list list;
    va_start(list, region);
    fork_region(size_of_next(symbiosis_omp_me()), count, region, list);
    va_end(list);
}

/* A league of teams has one team. */
ENTRY void __kmpc_fork_teams(struct place *place, int32_t count, microtask *region, ...)
{
    va_list list;
    va_start(list, region);
    fork_region(1, count, region, list);
    va_end(list);
}

ENTRY void __kmpc_serialized_parallel(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    struct thread *outer = allocate(sizeof *outer);
    struct team *team = form(me, 1);
    enter(me, outer);
    join(me, team, 0);
}

ENTRY void __kmpc_end_serialized_parallel(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    struct thread *outer = me->outer;
    free(me->task);
    free_loops(me->team);
    leave(me, outer);
    free(outer);
}

ENTRY int32_t __kmpc_global_thread_num(struct place *place) { return symbiosis_omp_me()->gtid; }

ENTRY int32_t __kmpc_global_num_threads(struct place *place)
{
    return __atomic_load_n(&next_gtid, __ATOMIC_SEQ_CST);
}

ENTRY int32_t __kmpc_bound_thread_num(struct place *place) { return symbiosis_omp_me()->number; }

ENTRY int32_t __kmpc_bound_num_threads(struct place *place) { return symbiosis_omp_me()->team->size; }

ENTRY int32_t __kmpc_ok_to_fork(struct place *place) { return 1; }

ENTRY int32_t __kmpc_in_parallel(struct place *place) { return symbiosis_omp_me()->team->active_level > 0; }

ENTRY void __kmpc_begin(struct place *place, int32_t flags) {}

ENTRY void __kmpc_end(struct place *place) {}

ENTRY void __kmpc_push_num_threads(struct place *place, int32_t gtid, int32_t threads)
{
    symbiosis_omp_me()->clause = threads;
}

ENTRY void __kmpc_pop_num_threads(struct place *place, int32_t gtid) {}

ENTRY void __kmpc_push_proc_bind(struct place *place, int32_t gtid, int32_t bind) {}

ENTRY void __kmpc_push_num_teams(struct place *place, int32_t gtid, int32_t teams, int32_t threads)
{
    if (threads > 0)
        symbiosis_omp_me()->threads = threads;
}

ENTRY void __kmpc_push_num_teams_51(struct place *place, int32_t gtid, int32_t least, int32_t most, int32_t threads)
{
    __kmpc_push_num_teams(place, gtid, most, threads);
}

/* A barrier of the team. */
void symbiosis_omp_wait(struct thread *me)
{
    if (me->team->size == 1)
        return;
    if (symbiosis_omp_task_barrier != NULL)
        symbiosis_omp_task_barrier(me);
    else
        pthread_barrier_wait(&me->team->barrier);
}
