/* A timer whose function runs in threads of the C library; the third of them closes what is in use. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int open, rings;
    char *buffer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void ring(union sigval value) {
    struct connection *connection = value.sival_ptr;
    pthread_mutex_lock(&lock);
    if (++connection->rings == 3) {
        connection->open = 0;
        free(connection->buffer);
        connection->buffer = NULL; /* closed */
    }
    pthread_mutex_unlock(&lock);
}

int main(void) {
    struct connection *connection = calloc(1, sizeof *connection);
    connection->buffer = malloc(64);
    connection->open = 1;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = ring;
    event.sigev_value.sival_ptr = connection;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 2;
    struct itimerspec often = {{0, 5000000}, {0, 5000000}};
    timer_settime(timer, 0, &often, NULL);
    pthread_mutex_lock(&lock);
    int open = connection->open; /* check */
    pthread_mutex_unlock(&lock);
    usleep(100000);
    pthread_mutex_lock(&lock);
    if (open) connection->buffer[0] = 'x'; /* use */
    pthread_mutex_unlock(&lock);
    timer_delete(timer);
    puts("done");
    return 0;
}
