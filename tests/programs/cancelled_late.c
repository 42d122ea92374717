/* A thread is cancelled while it reads; its cleanup handler sleeps between its two critical sections. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static int open_jobs = 2;

static void give_up(void *jobs)
{
    pthread_mutex_lock(&lock);
    int before = open_jobs;
    pthread_mutex_unlock(&lock);
    usleep(60000);
    pthread_mutex_lock(&lock);
    open_jobs = before - *(int *)jobs;
    pthread_mutex_unlock(&lock);
}

static void *work(void *jobs)
{
    pthread_cleanup_push(give_up, jobs);
    char byte;
    if (read(ends[0], &byte, 1) == 1)
        open_jobs = 9;
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    pthread_t worker;
    int jobs = 1;

    if (pipe(ends) != 0)
        return 0;
    pthread_create(&worker, NULL, work, &jobs);
    pthread_cancel(worker);
    usleep(30000);
    pthread_mutex_lock(&lock);
    int had = open_jobs;
    open_jobs = had - 1;
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    assert(open_jobs == 0);
    return 0;
}
