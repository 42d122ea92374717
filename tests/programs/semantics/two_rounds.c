/* A semaphore and a barrier are initialised once more for the second round, with other numbers. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

static sem_t lock;
static pthread_barrier_t met;
static volatile int count;

static void *add(void *argument)
{
    pthread_barrier_wait(&met);
    sem_wait(&lock);
    count = count + 1;
    sem_post(&lock);
    return argument;
}

static void *add_later(void *argument)
{
    pthread_barrier_wait(&met);
    sem_wait(&lock);
    int seen = count;
    sem_post(&lock);
    count = seen + 1;
    return argument;
}

static void round_of(unsigned threads, void *(*work)(void *))
{
    pthread_t ids[3];
    count = 0;
    pthread_barrier_init(&met, NULL, threads);
    sem_init(&lock, 0, 1);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    sem_wait(&lock);
    sem_destroy(&lock);
    pthread_barrier_destroy(&met);
}

int main(void)
{
    round_of(3, add);
    round_of(2, add_later);
    assert(count == 2);
    return 0;
}
