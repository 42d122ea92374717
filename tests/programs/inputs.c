// What this program does depends on its process id, the time, and random numbers: how often its
// threads go round, which way they count, and which of its functions fails. The updates of the
// counter are not protected.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int counter;
static int expected;
static int signalled;

static void count_up(int by) {
    int seen = counter;
    sched_yield();
    counter = seen + by;
}

static void count_twice(int by) {
    int seen = counter;
    sched_yield();
    counter = seen + by;
    seen = counter;
    sched_yield();
    counter = seen + by;
}

static void *work(void *rounds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    for (int i = 0; i < *(int *)rounds; i++) {
        if (((time.tv_nsec >> i) + gettid()) & 1) {
            __atomic_fetch_add(&expected, 1, __ATOMIC_RELAXED);
            count_up(1);
        } else {
            __atomic_fetch_add(&expected, 4, __ATOMIC_RELAXED);
            count_twice(2);
        }
    }
    return NULL;
}

static void on_signal(int number) {
    (void)number;
    signalled = 1;
}

// A child of `fork` has an id of its own, and knows its parent.
static int child_is_another(pid_t self) {
    pid_t child = fork();
    if (child == 0)
        _exit(getpid() != self && getppid() == self ? 7 : 8);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

int main(void) {
    pid_t self = getpid();
    unsigned seed = (unsigned)self;
    struct timeval now;
    unsigned char bytes[11];
    gettimeofday(&now, NULL);
    seed ^= (unsigned)now.tv_usec ^ (unsigned)time(NULL);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return 3;
    for (unsigned i = 0; i < sizeof bytes; i++)
        seed = seed * 31 + bytes[i];
    srand(seed);
    int rounds[2] = {2 + rand() % 3, 2 + rand() % 3};

    // A signal that the program sends to itself arrives, under whatever id it knows itself.
    signal(SIGUSR1, on_signal);
    if (kill(getpid(), SIGUSR1) != 0 || !signalled)
        return 4;
    if (!child_is_another(self))
        return 5;

    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &rounds[i]);

    // The deadline may come from a time that was long ago, but it is not over.
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec begin, deadline, end;
    clock_gettime(CLOCK_REALTIME, &begin);
    deadline = begin;
    deadline.tv_nsec += 20000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&never, &mutex, &deadline);
    pthread_mutex_unlock(&mutex);
    clock_gettime(CLOCK_REALTIME, &end);
    if (end.tv_sec < deadline.tv_sec
        || (end.tv_sec == deadline.tv_sec && end.tv_nsec < deadline.tv_nsec))
        return 6;

    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("I am %d %d %d\n", (int)self, (int)now.tv_usec, rand());
    fflush(stdout);
    if (seed & 1)
        assert(counter == expected);
    else
        assert(expected == counter);
    return 0;
}
