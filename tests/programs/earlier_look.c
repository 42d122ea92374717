/* A worker looks for room in its first round, and finds no job in its second one: what it had looked at before it gave
   the lock back has nothing to do with its wait. */
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static sem_t taken, filled;
static int jobs = 1, room = 1;

static void *work(void *arg)
{
    (void)arg;
    for (int round = 0; round < 2; round++) {
        pthread_mutex_lock(&m);
        while (jobs == 0 || room == 0)
            pthread_cond_wait(&more, &m);
        jobs--;
        pthread_mutex_unlock(&m);
        if (round == 0) {
            sem_post(&taken);
            sem_wait(&filled);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t worker;
    sem_init(&taken, 0, 0);
    sem_init(&filled, 0, 0);
    pthread_create(&worker, NULL, work, NULL);
    sem_wait(&taken);
    pthread_mutex_lock(&m);
    room = 0;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&m);
    sem_post(&filled);
    pthread_join(worker, NULL);
    return 0;
}
