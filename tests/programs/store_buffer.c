/*
 * A sleeper says that it sleeps and looks once more for work; a waker makes work and looks whether somebody sleeps.
 * Each does so in rounds, with both threads beginning a round together.
 *
 * Bug: the two writes are no full barriers, so that each thread may read before the other one sees what it wrote: then
 * nobody wakes the sleeper.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { ROUNDS = 300, SPINS = 2000 };

static struct {
    _Alignas(64) atomic_int work;
    _Alignas(64) atomic_int sleeping;
    _Alignas(64) atomic_int arrived;
    _Alignas(64) int saw_sleeper;
    _Alignas(64) int saw_work;
} shared;

static void meet(int meeting)
{
    atomic_fetch_add(&shared.arrived, 1);
    for (int spins = 0; atomic_load(&shared.arrived) < 2 * (meeting + 1); spins++)
        if (spins > SPINS)
            sched_yield();
}

static void *wake(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        meet(2 * i);
        atomic_store_explicit(&shared.work, i + 1, memory_order_release);
        shared.saw_sleeper = atomic_load_explicit(&shared.sleeping, memory_order_acquire) == i + 1;
        meet(2 * i + 1);
        assert(shared.saw_sleeper || shared.saw_work);
    }
    return unused;
}

static void *sleep_on(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        meet(2 * i);
        atomic_store_explicit(&shared.sleeping, i + 1, memory_order_release);
        shared.saw_work = atomic_load_explicit(&shared.work, memory_order_acquire) == i + 1;
        meet(2 * i + 1);
    }
    return unused;
}

int main(void)
{
    pthread_t waker, sleeper;

    pthread_create(&waker, NULL, wake, NULL);
    pthread_create(&sleeper, NULL, sleep_on, NULL);
    pthread_join(waker, NULL);
    pthread_join(sleeper, NULL);
    return 0;
}
