/*
 * Two threads count, and the sum of their counts is taken.
 *
 * NO_PATCH: before the second one has ended. JOINED: when both have.
 */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counts[2];
static int ended;

static void *count(void *number)
{
    int mine = *(int *)number;
    for (int i = 0; i < 10; i++)
        *(volatile int *)&counts[mine] += 1;
    pthread_mutex_lock(&lock);
    ended++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int sum(void)
{
    return counts[0] + counts[1];
}

int main(void)
{
    pthread_t counters[2];
    int numbers[2] = { 0, 1 };

    for (int i = 0; i < 2; i++)
        pthread_create(&counters[i], NULL, count, &numbers[i]);
    pthread_join(counters[0], NULL);
#ifdef JOINED
    pthread_join(counters[1], NULL);
#endif
    int total = sum();
#ifndef JOINED
    pthread_join(counters[1], NULL);
#endif
    assert(total == 20);
    return 0;
}
