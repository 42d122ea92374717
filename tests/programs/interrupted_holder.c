/* A handler takes a lock that the thread has which it interrupts. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int jobs, asked;

static void on_ask(int signal) {
    (void)signal;
    pthread_mutex_lock(&lock); /* asked for */
    asked++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock); /* held */
        jobs++;
        if (i == 2) raise(SIGUSR1);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    struct sigaction action = {0};
    action.sa_handler = on_ask;
    sigaction(SIGUSR1, &action, NULL);
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    pthread_join(worker, NULL);
    printf("%d %d\n", jobs, asked);
    return 0;
}
