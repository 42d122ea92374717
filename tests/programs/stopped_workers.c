/* Two workers wait for jobs, one signal for each of them, and for the end, which is told to all. Without FIXED the flag
   is raised without the lock. */
#include <pthread.h>
#include <stdatomic.h>

enum { JOBS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_int stopping;
static int jobs;

static void *work(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!stopping && jobs == 0)
            pthread_cond_wait(&wake, &lock);
        int found = jobs > 0;
        if (found)
            jobs--;
        pthread_mutex_unlock(&lock);
        if (!found)
            return arg;
    }
}

static void give(void)
{
    pthread_mutex_lock(&lock);
    jobs++;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

static void stop(void)
{
#ifdef FIXED
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_mutex_unlock(&lock);
#else
    stopping = 1;
#endif
    pthread_cond_broadcast(&wake);
}

int main(void)
{
    pthread_t workers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 0; i < JOBS; i++)
        give();
    stop();
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
