/* Loaded while the program runs; it starts a thread of its own. */
#include <pthread.h>

static int rounds;

static void *turn(void *argument)
{
    rounds += *(int *)argument;
    return 0;
}

int plugin_work(int times)
{
    pthread_t thread;
    if (pthread_create(&thread, 0, turn, &times))
        return -1;
    pthread_join(thread, 0);
    return rounds;
}
