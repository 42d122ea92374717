/* A signal that nobody waits for yet is lost; the waiter does not look whether it came. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int result;

static void *compute(void *argument)
{
    pthread_mutex_lock(&lock);
    result = 42;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, compute, NULL);
    usleep(100000);
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&ready, &lock);
    printf("%d\n", result);
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    return 0;
}
