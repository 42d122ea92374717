// A thread is cancelled while it waits; the first of its two cleanup handlers gives back the lock that it waited with.
#include <cassert>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static bool is_told;
static int open_jobs = 2;

static void give_back(void *mutex)
{
    pthread_mutex_unlock(static_cast<pthread_mutex_t *>(mutex));
}

static void give_up(void *jobs)
{
    pthread_mutex_lock(&lock);
    int before = open_jobs;
    pthread_mutex_unlock(&lock);
    usleep(60000);
    pthread_mutex_lock(&lock);
    open_jobs = before - *static_cast<int *>(jobs);
    pthread_mutex_unlock(&lock);
}

static void *work(void *jobs)
{
    pthread_cleanup_push(give_up, jobs);
    pthread_cleanup_push(give_back, &waiting);
    pthread_mutex_lock(&waiting);
    while (!is_told)
        pthread_cond_wait(&news, &waiting);
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return nullptr;
}

int main()
{
    pthread_t worker;
    int jobs = 1;

    pthread_create(&worker, nullptr, work, &jobs);
    usleep(10000);
    pthread_cancel(worker);
    usleep(30000);
    pthread_mutex_lock(&lock);
    int had = open_jobs;
    open_jobs = had - 1;
    pthread_mutex_unlock(&lock);
    pthread_join(worker, nullptr);
    assert(open_jobs == 0);
    return 0;
}
