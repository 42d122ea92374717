// Threads that wait in all the ways that make events: a flag, a flag under a mutex, a spin lock of
// one's own, Peterson's algorithm with a sleep, a time limit.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static atomic_int ready, held, go, want[2], turn;
static atomic_flag taken = ATOMIC_FLAG_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int done, shared;

static void acquire(void) {
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) {
    }
}

static void *flag(void *unused) {
    (void)unused;
    while (!atomic_load(&ready)) {
        usleep(100);
    }
    return NULL;
}

static void *under_mutex(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        if (done) {
            pthread_mutex_unlock(&mutex);
            break;
        }
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return NULL;
}

static void *own_lock(void *unused) {
    (void)unused;
    acquire();
    shared++;
    atomic_flag_clear_explicit(&taken, memory_order_release);
    return NULL;
}

static void *compare(void *unused) {
    (void)unused;
    int expected = 0;
    while (!atomic_compare_exchange_strong(&held, &expected, 1)) {
        expected = 0;
        sched_yield();
    }
    shared++;
    atomic_store(&held, 0);
    return NULL;
}

static void *peterson(void *unused) {
    (void)unused;
    atomic_store(&want[1], 1);
    atomic_store(&turn, 0);
    while (atomic_load(&want[0]) && atomic_load(&turn) == 0) {
        usleep(50);
    }
    shared++;
    atomic_store(&want[1], 0);
    return NULL;
}

static void *limited(void *unused) {
    (void)unused;
    struct timespec now, begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        usleep(100);
    } while (!atomic_load(&go) && now.tv_sec - begin.tv_sec < 60);
    return NULL;
}

int main(void) {
    void *(*const bodies[])(void *) = {flag, under_mutex, own_lock, compare, peterson, limited};
    pthread_t threads[6];
    atomic_store(&held, 1);
    atomic_store(&want[0], 1);
    acquire();
    for (int i = 0; i < 6; i++) {
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    }
    usleep(30000);
    atomic_flag_clear_explicit(&taken, memory_order_release);
    atomic_store(&ready, 1);
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_mutex_unlock(&mutex);
    atomic_store(&held, 0);
    atomic_store(&want[0], 0);
    atomic_store(&go, 1);
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d\n", shared);
    return 0;
}
