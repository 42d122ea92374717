/* Explicit tasks. All about them is under the lock of their team. */

#include "openmp.h"

enum { FINAL = 2, DESTRUCTORS = 8, DETACHABLE = 64 };
enum { DEPEND_IN = 1 };
/* How many tasks a `taskloop` without a clause about that makes, for each thread. */
enum { TASKS_PER_THREAD = 10 };

typedef int32_t task_function(int32_t gtid, void *task);

/* What the compiler knows of a task: privates follow. */
struct visible {
    void *shared;
    task_function *function;
    int32_t part;
    union {
        int32_t priority;
        task_function *destructors;
    } first, second;
};

struct task {
    struct task *next, *previous;
    struct task *parent;
    struct group *group;
    struct team *team;
    size_t size;
    /* Children that are not over; and who has a pointer to this task. */
    int children, references;
    /* The thread that is to execute it. */
    int lane;
    /* Tasks that have to be over first. */
    int awaits;
    /* The parent, the group and the team count it. */
    int counted;
    int flags, started, over;
    /* An untied task put itself into the queue again; a detachable one's event came, or its function ended. */
    int again, fulfilled, returned;
    struct edge *successors;
    struct variable *variables;
    struct visible visible __attribute__((aligned(16)));
};

struct edge {
    struct edge *next;
    struct task *task;
};

/* What a task's children depend on. */
struct variable {
    struct variable *next;
    intptr_t address;
    struct task *writer;
    struct edge *readers;
};

struct dependence {
    intptr_t address;
    size_t length;
    uint8_t flags;
};

/* A reduction as the compiler describes it. */
struct reduction {
    void *shared, *original;
    size_t size;
    void (*begin)(void *copy, void *original);
    void (*end)(void *copy);
    void (*combine)(void *into, void *copy);
    uint32_t flags;
};

struct group {
    struct group *outer;
    int unfinished;
    int count, threads;
    struct reduction *reductions;
    void **copies;
};

static void *room(size_t size)
{
    void *object = calloc(1, size);
    if (object == NULL)
        symbiosis_omp_complain("out of memory");
    return object;
}

static struct task *of(void *visible) { return (struct task *)((char *)visible - offsetof(struct task, visible)); }

/* The task that the thread executes. */
static struct task *current(struct thread *me)
{
    if (me->task == NULL) {
        me->task = room(sizeof *me->task);
        me->task->references = 1;
        me->task->team = me->team;
    }
    return me->task;
}

static void lock(struct team *team) { pthread_mutex_lock(&team->lock); }

static void unlock(struct team *team) { pthread_mutex_unlock(&team->lock); }

static void wait_for_change(struct team *team)
{
    team->waiting++;
    pthread_cond_wait(&team->changed, &team->lock);
    team->waiting--;
}

static void tell(struct team *team)
{
    if (team->waiting > 0)
        pthread_cond_broadcast(&team->changed);
}

/* Which thread executes a task is settled when it is made: then the order in which threads come to
 * their tasks is all that a schedule has to say. */
static void enqueue(struct team *team, struct task *task)
{
    struct lane *lane = &team->lanes[task->lane];
    task->next = NULL;
    task->previous = lane->last;
    if (lane->last != NULL)
        lane->last->next = task;
    else
        lane->first = task;
    lane->last = task;
    sem_post(&lane->work);
    tell(team);
}

static struct task *dequeue(struct team *team, struct task *task)
{
    struct lane *lane = &team->lanes[task->lane];
    if (task->previous != NULL)
        task->previous->next = task->next;
    else
        lane->first = task->next;
    if (task->next != NULL)
        task->next->previous = task->previous;
    else
        lane->last = task->previous;
    return task;
}

static int descends(const struct task *task, const struct task *from)
{
    while (task != NULL && task != from)
        task = task->parent;
    return task != NULL;
}

static struct task *last_below(struct lane *lane, const struct task *from)
{
    struct task *task = lane->last;
    while (task != NULL && !descends(task, from))
        task = task->previous;
    return task;
}

/* A thread that waits inside of a task may only begin tasks that come from it; others' only while those
 * wait as well, who would never begin them. */
static struct task *take_below(struct thread *me, const struct task *from)
{
    struct team *team = me->team;
    struct task *task = last_below(&team->lanes[me->number], from);
    for (int i = 0; task == NULL && i < team->size; i++)
        if (i != me->number && team->lanes[i].waits > 0)
            task = last_below(&team->lanes[i], from);
    if (task == NULL)
        return NULL;
    while (sem_wait(&team->lanes[task->lane].work) != 0) {}
    return dequeue(team, task);
}

static void forget_edges(struct edge *edge);

static void release(struct task *task)
{
    if (--task->references > 0)
        return;
    while (task->variables != NULL) {
        struct variable *variable = task->variables;
        task->variables = variable->next;
        if (variable->writer != NULL)
            release(variable->writer);
        forget_edges(variable->readers);
        free(variable);
    }
    free(task);
}

static void forget_edges(struct edge *edge)
{
    while (edge != NULL) {
        struct edge *next = edge->next;
        release(edge->task);
        free(edge);
        edge = next;
    }
}

/* Lets the team leave its barrier, when nothing is left to do. */
static void end_barrier(struct team *team)
{
    if (team->arrived < team->size || team->unfinished > 0)
        return;
    team->arrived = 0;
    for (int i = 0; i < team->size; i++)
        sem_post(&team->lanes[i].work);
}

/* The task is over; under the lock. */
static void finish(struct team *team, struct task *task)
{
    struct edge *edge = task->successors;
    task->over = 1;
    task->successors = NULL;
    while (edge != NULL) {
        struct edge *next = edge->next;
        if (--edge->task->awaits == 0 && edge->task->visible.function != NULL)
            enqueue(team, edge->task);
        free(edge);
        edge = next;
    }
    struct task *parent = task->parent;
    if (task->counted) {
        team->unfinished--;
        if (task->group != NULL)
            task->group->unfinished--;
        parent->children--;
        end_barrier(team);
    }
    tell(team);
    release(task);
    release(parent);
}

static void execute(struct thread *me, struct task *task)
{
    struct task *before = me->task;
    struct group *group = me->group;
    struct team *team = task->team;
    me->task = task;
    me->group = task->group;
    task->started = 1;
    do {
        task->again = 0;
        task->visible.function(me->gtid, &task->visible);
    } while (task->again);
    if (task->flags & DESTRUCTORS)
        task->visible.first.destructors(me->gtid, &task->visible);
    me->task = before;
    me->group = group;
    lock(team);
    task->returned = 1;
    if (!(task->flags & DETACHABLE) || task->fulfilled)
        finish(team, task);
    unlock(team);
}

/* Makes a task a child of the current one; under the lock. */
static void adopt(struct thread *me, struct task *task, int counted)
{
    struct task *parent = current(me);
    task->parent = parent;
    task->group = me->group;
    task->counted = counted;
    parent->references++;
    if (me->team->lanes != NULL) {
        uint32_t made = ++me->team->lanes[me->number].made;
        task->lane = (int)(((uint32_t)me->number + made) % (uint32_t)me->team->size);
    }
    if (parent->flags & FINAL)
        task->flags |= FINAL;
    if (counted) {
        parent->children++;
        me->team->unfinished++;
        if (task->group != NULL)
            task->group->unfinished++;
    }
}

static int is_deferred(struct thread *me) { return me->team->size > 1 && !(current(me)->flags & FINAL); }

/* The tasks of a team wait for each other and for nobody else. */
static void finish_below(struct thread *me, const int *left)
{
    struct team *team = me->team;
    struct task *from = current(me);
    lock(team);
    team->lanes[me->number].waits++;
    tell(team);
    while (*left > 0) {
        struct task *task = take_below(me, from);
        if (task != NULL) {
            unlock(team);
            execute(me, task);
            lock(team);
        } else {
            wait_for_change(team);
        }
    }
    team->lanes[me->number].waits--;
    unlock(team);
}

/* A thread that has come to a barrier executes its tasks until nobody has any. */
static void task_barrier(struct thread *me)
{
    struct team *team = me->team;
    struct lane *lane = &team->lanes[me->number];
    lock(team);
    team->arrived++;
    end_barrier(team);
    unlock(team);
    for (;;) {
        while (sem_wait(&lane->work) != 0) {}
        lock(team);
        struct task *task = lane->first;
        if (task != NULL)
            dequeue(team, task);
        unlock(team);
        if (task == NULL)
            break;
        execute(me, task);
    }
    if (me->task != NULL)
        release(me->task);
    me->task = NULL;
    pthread_barrier_wait(&team->barrier);
}

__attribute__((constructor)) static void begin(void) { symbiosis_omp_task_barrier = task_barrier; }

ENTRY void *__kmpc_omp_task_alloc(struct place *place, int32_t gtid, int32_t flags, size_t size, size_t shared_size,
                                  task_function *function)
{
    struct thread *me = symbiosis_omp_me();
    size_t head = (offsetof(struct task, visible) + size + 15) & ~(size_t)15;
    struct task *task = room(head + shared_size);
    task->size = head + shared_size;
    task->references = 1;
    task->team = me->team;
    task->flags = flags;
    task->visible.function = function;
    if (shared_size > 0)
        task->visible.shared = (char *)task + head;
    return &task->visible;
}

ENTRY void *__kmpc_omp_target_task_alloc(struct place *place, int32_t gtid, int32_t flags, size_t size,
                                         size_t shared_size, task_function *function, int64_t device)
{
    return __kmpc_omp_task_alloc(place, gtid, flags, size, shared_size, function);
}

ENTRY int32_t __kmpc_omp_task(struct place *place, int32_t gtid, void *visible)
{
    struct thread *me = symbiosis_omp_me();
    struct task *task = of(visible);
    if (task->started) {
        task->again = 1;
        return 0;
    }
    int deferred = is_deferred(me);
    lock(me->team);
    adopt(me, task, 1);
    if (deferred)
        enqueue(me->team, task);
    unlock(me->team);
    if (!deferred)
        execute(me, task);
    return 0;
}

ENTRY int32_t __kmpc_omp_task_parts(struct place *place, int32_t gtid, void *visible)
{
    return __kmpc_omp_task(place, gtid, visible);
}

/* `after` is to come behind `first`. */
static void order(struct task *first, struct task *after)
{
    if (first == NULL || first->over || first == after)
        return;
    struct edge *edge = room(sizeof *edge);
    edge->task = after;
    edge->next = first->successors;
    first->successors = edge;
    after->awaits++;
}

static struct variable *variable_of(struct task *parent, intptr_t address)
{
    struct variable *variable = parent->variables;
    while (variable != NULL && variable->address != address)
        variable = variable->next;
    if (variable == NULL) {
        variable = room(sizeof *variable);
        variable->address = address;
        variable->next = parent->variables;
        parent->variables = variable;
    }
    return variable;
}

/* Whom a task has to wait for. One that `stays` is waited for itself. */
static void depend(struct task *parent, struct task *task, int count, const struct dependence *list, int stays)
{
    for (int i = 0; i < count; i++) {
        struct variable *variable = variable_of(parent, list[i].address);
        int reads = list[i].flags == DEPEND_IN;
        order(variable->writer, task);
        for (struct edge *reader = reads ? NULL : variable->readers; reader != NULL; reader = reader->next)
            order(reader->task, task);
        if (!stays)
            continue;
        task->references++;
        if (reads) {
            struct edge *reader = room(sizeof *reader);
            reader->task = task;
            reader->next = variable->readers;
            variable->readers = reader;
        } else {
            if (variable->writer != NULL)
                release(variable->writer);
            forget_edges(variable->readers);
            variable->readers = NULL;
            variable->writer = task;
        }
    }
}

ENTRY int32_t __kmpc_omp_task_with_deps(struct place *place, int32_t gtid, void *visible, int32_t count,
                                        const struct dependence *list, int32_t more_count,
                                        const struct dependence *more)
{
    struct thread *me = symbiosis_omp_me();
    struct task *task = of(visible);
    if (task->started || !is_deferred(me))
        return __kmpc_omp_task(place, gtid, visible);
    lock(me->team);
    adopt(me, task, 1);
    depend(task->parent, task, count, list, 1);
    depend(task->parent, task, more_count, more, 1);
    if (task->awaits == 0)
        enqueue(me->team, task);
    unlock(me->team);
    return 0;
}

ENTRY void __kmpc_omp_wait_deps(struct place *place, int32_t gtid, int32_t count, const struct dependence *list,
                                int32_t more_count, const struct dependence *more)
{
    struct thread *me = symbiosis_omp_me();
    if (!is_deferred(me))
        return;
    struct task *mark = room(sizeof *mark);
    lock(me->team);
    depend(current(me), mark, count, list, 0);
    depend(current(me), mark, more_count, more, 0);
    unlock(me->team);
    finish_below(me, &mark->awaits);
    free(mark);
}

ENTRY void __kmpc_omp_taskwait_deps_51(struct place *place, int32_t gtid, int32_t count,
                                       const struct dependence *list, int32_t more_count,
                                       const struct dependence *more, int32_t nowait)
{
    __kmpc_omp_wait_deps(place, gtid, count, list, more_count, more);
}

ENTRY void __kmpc_omp_task_begin_if0(struct place *place, int32_t gtid, void *visible)
{
    struct thread *me = symbiosis_omp_me();
    struct task *task = of(visible);
    lock(me->team);
    adopt(me, task, 0);
    unlock(me->team);
    task->started = 1;
    me->task = task;
}

ENTRY void __kmpc_omp_task_complete_if0(struct place *place, int32_t gtid, void *visible)
{
    struct thread *me = symbiosis_omp_me();
    struct task *task = of(visible);
    me->task = task->parent;
    if (task->flags & DESTRUCTORS)
        task->visible.first.destructors(gtid, visible);
    lock(task->team);
    finish(task->team, task);
    unlock(task->team);
}

ENTRY int32_t __kmpc_omp_taskwait(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    if (me->task != NULL)
        finish_below(me, &me->task->children);
    return 0;
}

ENTRY int32_t __kmpc_omp_taskyield(struct place *place, int32_t gtid, int32_t end)
{
    struct thread *me = symbiosis_omp_me();
    if (me->task == NULL)
        return 0;
    lock(me->team);
    struct task *task = me->team->size > 1 ? take_below(me, me->task) : NULL;
    unlock(me->team);
    if (task != NULL)
        execute(me, task);
    return 0;
}

ENTRY void __kmpc_taskgroup(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    struct group *group = room(sizeof *group);
    group->outer = me->group;
    me->group = group;
}

/* Adds what the threads have of a group's reductions. */
static void combine(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        struct reduction *reduction = &group->reductions[i];
        for (int thread = 0; thread < group->threads; thread++) {
            void *copy = group->copies[i * group->threads + thread];
            if (copy == NULL)
                continue;
            reduction->combine(reduction->shared, copy);
            if (reduction->end != NULL)
                reduction->end(copy);
            free(copy);
        }
    }
    free(group->reductions);
    free(group->copies);
}

ENTRY void __kmpc_end_taskgroup(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    struct group *group = me->group;
    finish_below(me, &group->unfinished);
    combine(group);
    me->group = group->outer;
    free(group);
}

ENTRY void *__kmpc_taskred_init(int32_t gtid, int32_t count, const struct reduction *list)
{
    struct thread *me = symbiosis_omp_me();
    struct group *group = me->group;
    group->count = count;
    group->threads = me->team->size;
    group->reductions = room((size_t)count * sizeof *list);
    group->copies = room((size_t)(count * group->threads) * sizeof *group->copies);
    for (int i = 0; i < count; i++)
        group->reductions[i] = list[i];
    return group;
}

/* The calling thread's copy of what tasks add to. */
ENTRY void *__kmpc_task_reduction_get_th_data(int32_t gtid, void *of_group, void *data)
{
    struct thread *me = symbiosis_omp_me();
    struct group *group = of_group != NULL ? of_group : me->group;
    for (; group != NULL; group = group->outer)
        for (int i = 0; i < group->count; i++) {
            struct reduction *reduction = &group->reductions[i];
            void **copies = &group->copies[i * group->threads];
            int found = data == reduction->shared || data == reduction->original;
            for (int thread = 0; !found && thread < group->threads; thread++)
                found = copies[thread] == data;
            if (!found)
                continue;
            void **copy = &copies[me->number];
            if (*copy == NULL) {
                *copy = room(reduction->size);
                if (reduction->begin != NULL)
                    reduction->begin(*copy, reduction->original);
            }
            return *copy;
        }
    symbiosis_omp_complain("a task's reduction that nobody began");
}

ENTRY void *__kmpc_taskred_modifier_init(struct place *place, int32_t gtid, int32_t worksharing, int32_t count,
                                         const struct reduction *list)
{
    __kmpc_taskgroup(place, gtid);
    return __kmpc_taskred_init(gtid, count, list);
}

ENTRY void __kmpc_task_reduction_modifier_fini(struct place *place, int32_t gtid, int32_t worksharing)
{
    __kmpc_end_taskgroup(place, gtid);
}

typedef void duplicate(void *copy, void *task, int32_t is_last);

ENTRY void __kmpc_taskloop_5(struct place *place, int32_t gtid, void *visible, int32_t condition, uint64_t *lower,
                             uint64_t *upper, int64_t stride, int32_t no_group, int32_t schedule, uint64_t size,
                             int32_t strict, duplicate *copy_privates)
{
    struct thread *me = symbiosis_omp_me();
    struct task *task = of(visible);
    uint64_t first = *lower, last = *upper;
    uint64_t trips = 0, tasks = (uint64_t)me->team->size * TASKS_PER_THREAD;
    if (stride > 0 ? (int64_t)first <= (int64_t)last : (int64_t)last <= (int64_t)first)
        trips = stride > 0 ? (last - first) / (uint64_t)stride + 1 : (first - last) / -(uint64_t)stride + 1;
    if (schedule == 1)
        tasks = strict ? (trips + size - 1) / size : trips / size;
    else if (schedule == 2)
        tasks = size;
    if (tasks > trips)
        tasks = trips;
    if (tasks == 0 && trips > 0)
        tasks = 1;
    if (!no_group)
        __kmpc_taskgroup(place, gtid);
    for (uint64_t i = 0, done = 0; i < tasks; i++) {
        uint64_t part = trips / tasks + (i < trips % tasks);
        if (schedule == 1 && strict)
            part = size < trips - done ? size : trips - done;
        struct task *next = room(task->size);
        memcpy(next, task, task->size);
        if (task->visible.shared != NULL)
            next->visible.shared = (char *)next + ((char *)task->visible.shared - (char *)task);
        *(uint64_t *)((char *)next + ((char *)lower - (char *)task)) = first + done * (uint64_t)stride;
        *(uint64_t *)((char *)next + ((char *)upper - (char *)task)) = first + (done + part - 1) * (uint64_t)stride;
        if (copy_privates != NULL)
            copy_privates(&next->visible, visible, i + 1 == tasks);
        if (condition) {
            __kmpc_omp_task(place, gtid, &next->visible);
        } else {
            lock(me->team);
            adopt(me, next, 1);
            unlock(me->team);
            execute(me, next);
        }
        done += part;
    }
    if (task->flags & DESTRUCTORS)
        task->visible.first.destructors(gtid, visible);
    free(task);
    if (!no_group)
        __kmpc_end_taskgroup(place, gtid);
}

ENTRY void __kmpc_taskloop(struct place *place, int32_t gtid, void *visible, int32_t condition, uint64_t *lower,
                           uint64_t *upper, int64_t stride, int32_t no_group, int32_t schedule, uint64_t size,
                           duplicate *copy_privates)
{
    __kmpc_taskloop_5(place, gtid, visible, condition, lower, upper, stride, no_group, schedule, size, 0,
                      copy_privates);
}

ENTRY void *__kmpc_task_allow_completion_event(struct place *place, int32_t gtid, void *visible)
{
    return of(visible);
}

ENTRY void omp_fulfill_event(struct task *task)
{
    struct team *team = task->team;
    lock(team);
    task->fulfilled = 1;
    if (task->returned)
        finish(team, task);
    unlock(team);
}

ENTRY int32_t __kmpc_omp_reg_task_with_affinity(struct place *place, int32_t gtid, void *visible, int32_t count,
                                                void *list)
{
    return 0;
}

ENTRY int omp_in_final(void)
{
    struct task *task = symbiosis_omp_me()->task;
    return task != NULL && task->flags & FINAL;
}
