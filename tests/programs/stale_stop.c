/* A worker asks whether it is to stop, does its job with the mutex given back, finds no further one, and waits: that it was
 * told to stop meanwhile is not asked again. */
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static sem_t begun;
static int jobs, stop;

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!stop) { /* asked */
        while (jobs > 0) {
            jobs--;
            pthread_mutex_unlock(&lock);
            sem_post(&begun);
            usleep(200000);
            pthread_mutex_lock(&lock);
        }
        pthread_cond_wait(&wake, &lock); /* waits */
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t worker;
    sem_init(&begun, 0, 0);
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_lock(&lock);
    jobs = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_broadcast(&wake);
    sem_wait(&begun);
    pthread_mutex_lock(&lock);
    stop = 1; /* told */
    pthread_mutex_unlock(&lock);
    pthread_cond_broadcast(&wake);
    pthread_join(worker, NULL);
    return 0;
}
