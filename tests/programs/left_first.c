/* Who comes last to a barrier goes on at once, and fails while the other one is still in its call: that one only runs
 * when nobody else wants the processor. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static pthread_barrier_t both;
static int *value;
static int number = 1;

static void *first(void *argument)
{
    struct sched_param none = { 0 };
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    pthread_barrier_wait(&both);
    return argument;
}

static void *last(void *argument)
{
    usleep(50000);
    pthread_barrier_wait(&both);
    *value = 2;
    return argument;
}

int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, last, NULL);
    usleep(150000);
    value = &number;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
