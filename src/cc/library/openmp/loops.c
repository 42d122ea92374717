/* Worksharing loops. */

#include "openmp.h"

/* How an ordered loop's schedule is told from that of an ordinary one. */
enum { ORDERED_SHIFT = ORDERED - (STATIC_CHUNKED - 1), NOMERGE_SHIFT = NOMERGE - (STATIC_CHUNKED - 1) };

/* How many iterations a loop has. */
static uint64_t trips_up(uint64_t first, uint64_t last, uint64_t by) { return (last - first) / by + 1; }

/* The iterations of one thread, as libomp divides them. The bounds of a loop without iterations stay. */
#define STATIC_INIT(suffix, type, signed_type)                                                                 \
    static void divide_##suffix(int size, int number, int schedule, int32_t *last, type *lower, type *upper,   \
                                signed_type *stride, signed_type by, signed_type chunk)                        \
    {                                                                                                          \
        if (by > 0 ? *upper < *lower : *lower < *upper) {                                                      \
            *stride = by;                                                                                      \
            if (last != NULL)                                                                                  \
                *last = 0;                                                                                     \
            return;                                                                                            \
        }                                                                                                      \
        uint64_t trips = by > 0 ? trips_up((uint64_t)*lower, (uint64_t)*upper, (uint64_t)by)                   \
                                : trips_up((uint64_t)*upper, (uint64_t)*lower, -(uint64_t)by);                 \
        int is_last = 1;                                                                                       \
        if (size == 1) {                                                                                       \
            *stride = (signed_type)(by > 0 ? *upper - *lower + 1 : *upper - *lower - 1);                       \
        } else if (schedule == STATIC_CHUNKED) {                                                               \
            signed_type part = chunk < 1 ? 1 : chunk;                                                          \
            signed_type span = part * by;                                                                      \
            *stride = span * size;                                                                             \
            *lower += (type)(span * number);                                                                   \
            *upper = *lower + (type)(span - by);                                                               \
            is_last = (uint64_t)number == (trips - 1) / (uint64_t)part % (uint64_t)size;                       \
        } else if (schedule == STATIC_BALANCED_CHUNKED) {                                                      \
            uint64_t part = (trips + (uint64_t)size - 1) / (uint64_t)size;                                     \
            part = (part + (uint64_t)chunk - 1) & ~((uint64_t)chunk - 1);                                      \
            uint64_t begin = part * (uint64_t)number < trips ? part * (uint64_t)number : trips;                \
            uint64_t end = begin + part < trips ? begin + part : trips;                                        \
            is_last = begin < end && end == trips;                                                             \
            *stride = (signed_type)trips;                                                                      \
            *upper = *lower + (type)end * (type)by - (type)by;                                                 \
            *lower += (type)begin * (type)by;                                                                  \
        } else {                                                                                               \
            uint64_t part = trips / (uint64_t)size, more = trips % (uint64_t)size, mine = (uint64_t)number;    \
            uint64_t begin = part * mine + (mine < more ? mine : more);                                        \
            uint64_t end = begin + part + (mine < more);                                                       \
            is_last = begin < end && end == trips;                                                             \
            *stride = (signed_type)trips;                                                                      \
            *upper = *lower + (type)end * (type)by - (type)by;                                                 \
            *lower += (type)begin * (type)by;                                                                  \
        }                                                                                                      \
        if (last != NULL)                                                                                      \
            *last = is_last;                                                                                   \
    }                                                                                                          \
                                                                                                               \
    ENTRY void __kmpc_for_static_init_##suffix(struct place *place, int32_t gtid, int32_t schedule,            \
                                               int32_t *last, type *lower, type *upper, signed_type *stride,   \
                                               signed_type by, signed_type chunk)                              \
    {                                                                                                          \
        struct thread *me = symbiosis_omp_me();                                                                \
        schedule &= ~MODIFIERS;                                                                                \
        int league = schedule == DISTRIBUTE || schedule == DISTRIBUTE_CHUNKED;                                 \
        divide_##suffix(league ? 1 : me->team->size, league ? 0 : me->number, schedule, last, lower, upper,    \
                        stride, by, chunk);                                                                    \
    }                                                                                                          \
                                                                                                               \
    ENTRY void __kmpc_dist_for_static_init_##suffix(struct place *place, int32_t gtid, int32_t schedule,       \
                                                    int32_t *last, type *lower, type *upper, type *upper_dist, \
                                                    signed_type *stride, signed_type by, signed_type chunk)    \
    {                                                                                                          \
        struct thread *me = symbiosis_omp_me();                                                                \
        *upper_dist = *upper;                                                                                  \
        divide_##suffix(me->team->size, me->number, schedule & ~MODIFIERS, last, lower, upper, stride, by,     \
                        chunk);                                                                                \
    }                                                                                                          \
                                                                                                               \
    ENTRY void __kmpc_team_static_init_##suffix(struct place *place, int32_t gtid, int32_t *last, type *lower, \
                                                type *upper, signed_type *stride, signed_type by,              \
                                                signed_type chunk)                                             \
    {                                                                                                          \
        divide_##suffix(1, 0, STATIC, last, lower, upper, stride, by, chunk);                                  \
    }

STATIC_INIT(4, int32_t, int32_t)
STATIC_INIT(4u, uint32_t, int32_t)
STATIC_INIT(8, int64_t, int64_t)
STATIC_INIT(8u, uint64_t, int64_t)

ENTRY void __kmpc_for_static_fini(struct place *place, int32_t gtid) {}

/* The team's next loop. All its threads get the same, since they come to the team's loops in one order. */
static struct loop *next_loop(struct thread *me)
{
    struct team *team = me->team;
    if (team->size == 1) {
        free(team->first.finished);
        team->first.finished = NULL;
        team->first.taken = 0;
        team->first.turn = 0;
        return &team->first;
    }
    if (me->loop == NULL)
        return me->loop = &team->first;
    struct loop *next = __atomic_load_n(&me->loop->next, __ATOMIC_SEQ_CST);
    if (next == NULL) {
        struct loop *made = calloc(1, sizeof *made);
        if (made == NULL)
            symbiosis_omp_complain("out of memory");
        pthread_mutex_init(&made->lock, NULL);
        pthread_cond_init(&made->moved, NULL);
        if (__atomic_compare_exchange_n(&me->loop->next, &next, made, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            next = made;
        else
            free(made);
    }
    return me->loop = next;
}

static void begin(int schedule, uint64_t first, uint64_t trips, uint64_t stride, int64_t chunk)
{
    struct thread *me = symbiosis_omp_me();
    struct share *share = &me->share;
    schedule &= ~MODIFIERS;
    if (schedule >= NOMERGE)
        schedule -= NOMERGE_SHIFT;
    if (schedule > ORDERED && schedule < DISTRIBUTE_CHUNKED)
        schedule -= ORDERED_SHIFT;
    if (schedule == RUNTIME || schedule == RUNTIME_SIMD) {
        schedule = symbiosis_omp.schedule;
        chunk = symbiosis_omp.chunk;
    }
    uint64_t size = (uint64_t)me->team->size, number = (uint64_t)me->number;
    share->loop = next_loop(me);
    share->first = first;
    share->stride = stride;
    share->trips = trips;
    share->chunk = chunk > 0 ? (uint64_t)chunk : 1;
    share->passed = 0;
    switch (schedule) {
    case DYNAMIC:
        share->schedule = DYNAMIC;
        break;
    case GUIDED:
    case GUIDED_SIMD:
        share->schedule = GUIDED;
        break;
    case STATIC_CHUNKED:
        share->schedule = STATIC_CHUNKED;
        share->next = number * share->chunk;
        share->step = size * share->chunk;
        break;
    default: {
        uint64_t part = trips / size, more = trips % size;
        share->schedule = STATIC;
        share->next = part * number + (number < more ? number : more);
        share->chunk = part + (number < more);
        share->step = trips;
    }
    }
}

/* The next iterations of the calling thread: how many, and the first of them. */
static uint64_t take(struct share *share, uint64_t size, uint64_t *from)
{
    uint64_t trips = share->trips, at, part = share->chunk;
    if (share->schedule == DYNAMIC) {
        at = __atomic_fetch_add(&share->loop->taken, part, __ATOMIC_SEQ_CST);
    } else if (share->schedule == GUIDED) {
        at = __atomic_load_n(&share->loop->taken, __ATOMIC_SEQ_CST);
        do {
            if (at >= trips)
                return 0;
            part = (trips - at) / (2 * size);
            if (part < share->chunk)
                part = share->chunk;
        } while (!__atomic_compare_exchange_n(&share->loop->taken, &at, at + part, 0, __ATOMIC_SEQ_CST,
                                              __ATOMIC_SEQ_CST));
    } else {
        at = share->next;
        share->next += share->step;
    }
    if (at >= trips)
        return 0;
    *from = at;
    return part < trips - at ? part : trips - at;
}

/* Waits until all iterations before the thread's have left the ordered region. */
static void await_turn(struct share *share)
{
    struct loop *loop = share->loop;
    pthread_mutex_lock(&loop->lock);
    while (loop->turn != share->iteration)
        pthread_cond_wait(&loop->moved, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
}

static void pass_turn(struct share *share)
{
    struct loop *loop = share->loop;
    pthread_mutex_lock(&loop->lock);
    loop->turn = share->iteration + 1;
    pthread_cond_broadcast(&loop->moved);
    pthread_mutex_unlock(&loop->lock);
    share->passed = 1;
}

ENTRY void __kmpc_ordered(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    if (me->team->size > 1)
        await_turn(&me->share);
}

ENTRY void __kmpc_end_ordered(struct place *place, int32_t gtid)
{
    struct thread *me = symbiosis_omp_me();
    if (me->team->size > 1)
        pass_turn(&me->share);
}

/* An iteration of an ordered loop is over. */
static void end_iteration(void)
{
    struct thread *me = symbiosis_omp_me();
    if (me->team->size == 1)
        return;
    if (!me->share.passed) {
        await_turn(&me->share);
        pass_turn(&me->share);
    }
    me->share.iteration++;
    me->share.passed = 0;
}

#define DISPATCH(suffix, type, signed_type)                                                                    \
    ENTRY void __kmpc_dispatch_init_##suffix(struct place *place, int32_t gtid, int32_t schedule, type lower,  \
                                             type upper, signed_type by, signed_type chunk)                    \
    {                                                                                                          \
        uint64_t trips = 0;                                                                                    \
        if (by > 0 ? lower <= upper : upper <= lower)                                                          \
            trips = by > 0 ? trips_up((uint64_t)lower, (uint64_t)upper, (uint64_t)by)                          \
                           : trips_up((uint64_t)upper, (uint64_t)lower, -(uint64_t)by);                        \
        begin(schedule, (uint64_t)lower, trips, (uint64_t)by, chunk);                                          \
    }                                                                                                          \
                                                                                                               \
    ENTRY void __kmpc_dist_dispatch_init_##suffix(struct place *place, int32_t gtid, int32_t schedule,         \
                                                  int32_t *last, type lower, type upper, signed_type by,       \
                                                  signed_type chunk)                                           \
    {                                                                                                          \
        if (last != NULL)                                                                                      \
            *last = 1;                                                                                         \
        __kmpc_dispatch_init_##suffix(place, gtid, schedule, lower, upper, by, chunk);                         \
    }                                                                                                          \
                                                                                                               \
    ENTRY int32_t __kmpc_dispatch_next_##suffix(struct place *place, int32_t gtid, int32_t *last, type *lower, \
                                                type *upper, signed_type *by)                                  \
    {                                                                                                          \
        struct thread *me = symbiosis_omp_me();                                                                \
        struct share *share = &me->share;                                                                      \
        uint64_t from = 0, count = take(share, (uint64_t)me->team->size, &from);                               \
        if (count == 0)                                                                                        \
            return 0;                                                                                          \
        share->iteration = from;                                                                               \
        *lower = (type)(share->first + from * share->stride);                                                  \
        *upper = (type)(share->first + (from + count - 1) * share->stride);                                    \
        if (by != NULL)                                                                                        \
            *by = (signed_type)share->stride;                                                                  \
        if (last != NULL)                                                                                      \
            *last = from + count == share->trips;                                                              \
        return 1;                                                                                              \
    }                                                                                                          \
                                                                                                               \
    ENTRY void __kmpc_dispatch_fini_##suffix(struct place *place, int32_t gtid) { end_iteration(); }

DISPATCH(4, int32_t, int32_t)
DISPATCH(4u, uint32_t, int32_t)
DISPATCH(8, int64_t, int64_t)
DISPATCH(8u, uint64_t, int64_t)

/* One loop of an `ordered(n)` nest. */
struct range {
    int64_t lower, upper, by;
};

/* The number of an iteration in the nest; -1 for one outside of it. */
static int64_t iteration_of(const struct sinks *sinks, const int64_t *vector)
{
    int64_t number = 0;
    for (int i = 0; i < sinks->count; i++) {
        const struct range *range = &sinks->ranges[i];
        int64_t at = vector[i];
        if (range->by > 0 ? at < range->lower || at > range->upper : at > range->lower || at < range->upper)
            return -1;
        int64_t trips = (range->upper - range->lower) / range->by + 1;
        number = number * trips + (at - range->lower) / range->by;
    }
    return number;
}

ENTRY void __kmpc_doacross_init(struct place *place, int32_t gtid, int32_t count, const struct range *ranges)
{
    struct thread *me = symbiosis_omp_me();
    struct sinks *sinks = &me->sinks;
    int64_t trips = 1;
    sinks->ranges = calloc((size_t)count, sizeof *ranges);
    if (sinks->ranges == NULL)
        symbiosis_omp_complain("out of memory");
    sinks->count = count;
    for (int i = 0; i < count; i++) {
        sinks->ranges[i] = ranges[i];
        trips *= (ranges[i].upper - ranges[i].lower) / ranges[i].by + 1;
    }
    sinks->loop = next_loop(me);
    unsigned char *none = NULL, *made = calloc(trips > 0 ? (size_t)trips : 1, 1);
    if (made == NULL)
        symbiosis_omp_complain("out of memory");
    if (!__atomic_compare_exchange_n(&sinks->loop->finished, &none, made, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        free(made);
}

ENTRY void __kmpc_doacross_wait(struct place *place, int32_t gtid, const int64_t *vector)
{
    struct sinks *sinks = &symbiosis_omp_me()->sinks;
    int64_t number = iteration_of(sinks, vector);
    if (number < 0 || symbiosis_omp_me()->team->size == 1)
        return;
    pthread_mutex_lock(&sinks->loop->lock);
    while (!sinks->loop->finished[number])
        pthread_cond_wait(&sinks->loop->moved, &sinks->loop->lock);
    pthread_mutex_unlock(&sinks->loop->lock);
}

ENTRY void __kmpc_doacross_post(struct place *place, int32_t gtid, const int64_t *vector)
{
    struct sinks *sinks = &symbiosis_omp_me()->sinks;
    int64_t number = iteration_of(sinks, vector);
    if (number < 0 || symbiosis_omp_me()->team->size == 1)
        return;
    pthread_mutex_lock(&sinks->loop->lock);
    sinks->loop->finished[number] = 1;
    pthread_cond_broadcast(&sinks->loop->moved);
    pthread_mutex_unlock(&sinks->loop->lock);
}

ENTRY void __kmpc_doacross_fini(struct place *place, int32_t gtid)
{
    struct sinks *sinks = &symbiosis_omp_me()->sinks;
    free(sinks->ranges);
    sinks->ranges = NULL;
}
