/* A signal comes between the consumer's check and its wait. The program notices by itself that it hangs, in the way that
   the argument says, or not at all; `slow` only takes longer than the time that it gives itself. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static int full;
static int done;
static int slow;

static int is_full(void) {
    pthread_mutex_lock(&mutex);
    int is = full;
    pthread_mutex_unlock(&mutex);
    return is;
}

static void *consume(void *unused) {
    if (!is_full()) {
        usleep(30000);
        pthread_mutex_lock(&mutex);
        if (!slow)
            pthread_cond_wait(&filled, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (slow)
        usleep(200000);
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *produce(void *unused) {
    usleep(10000);
    pthread_mutex_lock(&mutex);
    full = 1;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *watch(void *unused) {
    for (int i = 0; i < 5; i++) {
        usleep(60000);
        pthread_mutex_lock(&mutex);
        int is = done;
        pthread_mutex_unlock(&mutex);
        if (is)
            return unused;
    }
    fprintf(stderr, "no progress\n");
    abort();
}

static int made;

/* Waits for the kind of thing that the argument says. */
static void *take(void *kind) {
    usleep(kind ? 20000 : 0);
    pthread_mutex_lock(&mutex);
    while (made != (kind ? 1 : 2))
        pthread_cond_wait(&filled, &mutex);
    pthread_mutex_unlock(&mutex);
    return kind;
}

static void *make(void *unused) {
    usleep(60000);
    pthread_mutex_lock(&mutex);
    made = 1;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *limit(void *unused) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    pthread_mutex_lock(&mutex);
    while (!done)
        if (pthread_cond_timedwait(&finished, &mutex, &until) == ETIMEDOUT)
            abort();
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* With `other` and `other-watched`: the signal wakes the one of two that it is not for. */
static void wakes_another(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, take, NULL);
    pthread_create(&threads[1], NULL, take, &made);
    pthread_create(&threads[2], NULL, make, NULL);
    pthread_join(threads[1], NULL);
    exit(0);
}

static void late(int signal) {
    static const char text[] = "out of time\n";
    (void)signal;
    if (write(2, text, sizeof text - 1))
        _exit(3);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t threads[2], watcher;
    struct itimerval soon = {{0, 0}, {0, 300000}};
    slow = !strcmp(how, "slow");
    if (!strcmp(how, "watcher"))
        pthread_create(&watcher, NULL, watch, NULL);
    if (!strcmp(how, "handler") || !strcmp(how, "other"))
        signal(SIGALRM, late);
    if (!strcmp(how, "handler") || !strcmp(how, "alarm") || !strcmp(how, "other"))
        setitimer(ITIMER_REAL, &soon, NULL);
    if (!strcmp(how, "other-watched"))
        pthread_create(&watcher, NULL, limit, NULL);
    if (!strncmp(how, "other", 5))
        wakes_another();
    pthread_create(&threads[0], NULL, consume, NULL);
    pthread_create(&threads[1], NULL, produce, NULL);
    if (!strcmp(how, "limit") || slow) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += slow ? 100000000 : 300000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&mutex);
        while (!done)
            if (pthread_cond_timedwait(&finished, &mutex, &until) == ETIMEDOUT) {
                fprintf(stderr, "not finished in time\n");
                exit(1);
            }
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
