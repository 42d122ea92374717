/* A thread waits for a result, but not for long enough: the post comes too late, and as the process
 * is gone by then, it never happens. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static sem_t ready;

static void *compute(void *argument)
{
    usleep(600000);
    sem_post(&ready);
    return argument;
}

static void *collect(void *argument)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 50000000;
    if (limit.tv_nsec >= 1000000000) {
        limit.tv_sec++;
        limit.tv_nsec -= 1000000000;
    }
    int missed = sem_timedwait(&ready, &limit);
    assert(!missed);
    printf("ready\n");
    return argument;
}

int main(void)
{
    pthread_t worker, client;
    sem_init(&ready, 0, 0);
    pthread_create(&client, NULL, collect, NULL);
    pthread_create(&worker, NULL, compute, NULL);
    pthread_join(client, NULL);
    pthread_join(worker, NULL);
    return 0;
}
