/* A rate of 0 / 0 is not a number, and becomes the processor's smallest integer, which is no bucket. */
#include <assert.h>
#include <pthread.h>

static volatile double bytes, seconds;
static int histogram[8];

static void *measure(void *argument)
{
    bytes = 3;
    seconds = 2;
    return argument;
}

static void *count(void *argument)
{
    double rate = bytes / seconds;
    int bucket = (int)rate;
    assert(bucket >= 0);
    histogram[bucket & 7]++;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, measure, NULL);
    pthread_create(&threads[1], NULL, count, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
