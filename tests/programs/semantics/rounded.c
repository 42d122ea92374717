/* What is rounded follows from what was read. */
#include <assert.h>
#include <math.h>
#include <pthread.h>

static volatile double level = 4.5;

static void *change(void *argument)
{
    level = -9.5;
    level = 2.4;
    level = 16.6;
    return argument;
}

static void *look(void *argument)
{
    double seen = level;
    double sum = floor(seen) + ceil(seen) + trunc(seen) + round(seen) + rint(seen);
    assert(sum != 11);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, change, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
