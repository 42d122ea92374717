/* A worker looks whether it should stop before it waits for jobs, and not where it waits. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static atomic_int stopping;
static int jobs, done;

static void *work(void *arg)
{
    (void)arg;
    while (!stopping) {
        pthread_mutex_lock(&m);
        while (jobs == 0)
            pthread_cond_wait(&more, &m);
        jobs--;
        done++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    struct timespec while_it_looks = {.tv_nsec = 20000000};
    nanosleep(&while_it_looks, NULL);
    stopping = 1;
    pthread_mutex_lock(&m);
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&m);
    pthread_join(worker, NULL);
    return 0;
}
