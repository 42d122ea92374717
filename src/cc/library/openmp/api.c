/* What `omp.h` offers besides locks. */

#include "openmp.h"
#include <time.h>

ENTRY int omp_get_thread_num(void) { return symbiosis_omp_me()->number; }
ENTRY int omp_get_num_threads(void) { return symbiosis_omp_me()->team->size; }
ENTRY int omp_get_max_threads(void) { return symbiosis_omp_me()->threads; }
ENTRY int omp_get_num_procs(void) { return symbiosis_omp.processors; }
ENTRY int omp_in_parallel(void) { return symbiosis_omp_me()->team->active_level > 0; }
ENTRY int omp_get_level(void) { return symbiosis_omp_me()->team->level; }
ENTRY int omp_get_active_level(void) { return symbiosis_omp_me()->team->active_level; }
ENTRY int omp_get_thread_limit(void) { return symbiosis_omp.limit; }
ENTRY int omp_get_dynamic(void) { return symbiosis_omp.dynamic; }
ENTRY int omp_get_nested(void) { return symbiosis_omp.max_levels > 1; }
ENTRY int omp_get_max_active_levels(void) { return symbiosis_omp.max_levels; }
ENTRY int omp_get_supported_active_levels(void) { return 0x7fffffff; }
ENTRY int omp_get_cancellation(void) { return 0; }
ENTRY int omp_get_max_task_priority(void) { return 0; }
ENTRY void omp_set_dynamic(int dynamic) { symbiosis_omp.dynamic = dynamic != 0; }
ENTRY void omp_set_nested(int nested) { symbiosis_omp.max_levels = nested ? 0x7fffffff : 1; }

ENTRY void omp_set_num_threads(int threads)
{
    if (threads > 0)
        symbiosis_omp_me()->threads = threads;
}

ENTRY void omp_set_max_active_levels(int levels)
{
    if (levels >= 0)
        symbiosis_omp.max_levels = levels;
}

/* The kinds of `omp.h` and those of the compiler. */
enum { OMP_STATIC = 1, OMP_MONOTONIC = 0x80000000 };

ENTRY void omp_set_schedule(unsigned kind, int chunk)
{
    kind &= ~OMP_MONOTONIC;
    symbiosis_omp.chunk = chunk > 0 ? chunk : 0;
    if (kind == OMP_STATIC)
        symbiosis_omp.schedule = chunk > 0 ? 33 : 34;
    else
        symbiosis_omp.schedule = kind == 2 ? 35 : kind == 3 ? 36 : 38;
}

ENTRY void omp_get_schedule(unsigned *kind, int *chunk)
{
    int schedule = symbiosis_omp.schedule;
    *kind = schedule <= 34 ? OMP_STATIC : schedule == 35 ? 2 : schedule == 36 ? 3 : 4;
    *chunk = symbiosis_omp.chunk;
}

/* The team of a level of the nest, and the calling thread's number there. */
static struct team *at_level(int level, int *number)
{
    struct thread *me = symbiosis_omp_me();
    struct team *team = me->team;
    *number = me->number;
    if (level < 0 || level > team->level)
        return NULL;
    while (team->level > level) {
        *number = team->outer_number;
        team = team->outer;
    }
    return team;
}

ENTRY int omp_get_ancestor_thread_num(int level)
{
    int number;
    return at_level(level, &number) == NULL ? -1 : number;
}

ENTRY int omp_get_team_size(int level)
{
    int number;
    struct team *team = at_level(level, &number);
    return team == NULL ? -1 : team->size;
}

/* No threads are bound to places. */
ENTRY int omp_get_proc_bind(void) { return 0; }
ENTRY int omp_get_num_places(void) { return 0; }
ENTRY int omp_get_place_num_procs(int place) { return 0; }
ENTRY void omp_get_place_proc_ids(int place, int *ids) {}
ENTRY int omp_get_place_num(void) { return -1; }
ENTRY int omp_get_partition_num_places(void) { return 0; }
ENTRY void omp_get_partition_place_nums(int *places) {}

/* The host is the only device. */
ENTRY int omp_get_default_device(void) { return 0; }
ENTRY void omp_set_default_device(int device) {}
ENTRY int omp_get_num_devices(void) { return 0; }
ENTRY int omp_get_initial_device(void) { return 0; }
ENTRY int omp_get_device_num(void) { return 0; }
ENTRY int omp_is_initial_device(void) { return 1; }
ENTRY int omp_get_num_teams(void) { return 1; }
ENTRY int omp_get_team_num(void) { return 0; }
ENTRY int omp_get_max_teams(void) { return 1; }
ENTRY void omp_set_num_teams(int teams) {}
ENTRY int omp_get_teams_thread_limit(void) { return 0; }
ENTRY void omp_set_teams_thread_limit(int limit) {}
ENTRY int omp_pause_resource(int kind, int device) { return 0; }
ENTRY int omp_pause_resource_all(int kind) { return 0; }

ENTRY double omp_get_wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

ENTRY double omp_get_wtick(void) { return 1e-9; }

/* All allocators are the heap. */
ENTRY void *omp_init_allocator(void *space, int count, const void *traits) { return (void *)1; }
ENTRY void omp_destroy_allocator(void *allocator) {}
ENTRY void omp_set_default_allocator(void *allocator) {}
ENTRY void *omp_get_default_allocator(void) { return (void *)1; }
ENTRY void *omp_alloc(size_t size, void *allocator) { return malloc(size); }
ENTRY void *omp_calloc(size_t count, size_t size, void *allocator) { return calloc(count, size); }
ENTRY void *omp_realloc(void *old, size_t size, void *allocator, void *before) { return realloc(old, size); }
ENTRY void *omp_aligned_alloc(size_t align, size_t size, void *allocator) { return aligned_alloc(align, size); }
ENTRY void omp_free(void *object, void *allocator) { free(object); }
ENTRY void *__kmpc_alloc(int gtid, size_t size, void *allocator) { return malloc(size); }
ENTRY void *__kmpc_aligned_alloc(int gtid, size_t align, size_t size, void *allocator)
{
    return aligned_alloc(align, size);
}
ENTRY void *__kmpc_calloc(int gtid, size_t count, size_t size, void *allocator) { return calloc(count, size); }
ENTRY void __kmpc_free(int gtid, void *object, void *allocator) { free(object); }
