/* The second of two tries to take a unit fails: the run ends before another thread gives it. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

static sem_t free_slots;

static void *release(void *argument)
{
    sem_post(&free_slots);
    return argument;
}

static void *reserve(void *argument)
{
    int first = sem_trywait(&free_slots);
    int second = sem_trywait(&free_slots);
    assert(first == 0 && second == 0);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&free_slots, 0, 1);
    pthread_create(&threads[0], NULL, release, NULL);
    pthread_create(&threads[1], NULL, reserve, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
