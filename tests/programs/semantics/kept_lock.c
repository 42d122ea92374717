/* A thread that ended with a lock does not give it back: a try behind its join fails. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int state;

static void *work(void *argument)
{
    pthread_mutex_lock(&lock);
    if (state == 1)
        return argument;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *change(void *argument)
{
    state = 1;
    state = 2;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, change, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    int failed = pthread_mutex_trylock(&lock);
    assert(!failed);
    return 0;
}
