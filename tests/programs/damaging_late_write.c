/* A worker answers too late: by then a function that was called since has its return address there. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int *wanted;

static void *work(void *argument)
{
    pthread_mutex_lock(&mutex);
    int *answer = wanted;
    pthread_mutex_unlock(&mutex);
    usleep(2000);
    pthread_mutex_lock(&mutex);
    *answer = 7;
    pthread_mutex_unlock(&mutex);
    return argument;
}

static __attribute__((noinline)) void ask(pthread_t *worker)
{
    int answer = 0;
    wanted = &answer;
    pthread_create(worker, NULL, work, NULL);
    usleep(500);
}

int main(void)
{
    pthread_t worker;
    ask(&worker);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    usleep(4000);
    pthread_join(worker, NULL);
    return 0;
}
