/* A worker looks whether to stop and whether there is a full slot, and takes its time before it waits. Meanwhile another
   thread takes the slot out of the ring, and says then that the worker is to stop, both without the lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SLOTS = 4, FULL = 1, BUSY = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_int stop, first, end = 1, state[SLOTS] = {BUSY};

static int claim(void)
{
    int from = first, to = end;
    for (int slot = from; slot < to; slot++) {
        int full = FULL;
        if (atomic_compare_exchange_strong(&state[slot % SLOTS], &full, BUSY))
            return 1;
    }
    return 0;
}

static void *work(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!stop && !claim()) {
        usleep(300000);
        pthread_cond_wait(&wake, &lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void take_out(void)
{
    first++;
}

static void shut_down(void)
{
    stop = 1;
    pthread_cond_broadcast(&wake); /* told */
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    usleep(100000);
    take_out();
    shut_down();
    pthread_cond_broadcast(&wake); /* told again */
    pthread_join(worker, NULL);
    return 0;
}
