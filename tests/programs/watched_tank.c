/*
 * A tank for one item: who takes it tells that there is room only where the tank was full when it looked, before it took the
 * lock. A third thread ends the program when nothing has been done for half a second.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, end = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, item = PTHREAD_COND_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int level, done;

static void fill(void)
{
    pthread_mutex_lock(&lock);
    while (level == 1)
        pthread_cond_wait(&room, &lock);
    level++;
    pthread_cond_signal(&item);
    pthread_mutex_unlock(&lock);
}

static void drain(void)
{
    int was_full = level == 1;
    usleep(20000);
    pthread_mutex_lock(&lock);
    while (level == 0)
        pthread_cond_wait(&item, &lock);
    level--;
    if (was_full)
        pthread_cond_signal(&room);
    pthread_mutex_unlock(&lock);
}

static void *watch(void *unused)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 500000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&end);
    while (!done)
        if (pthread_cond_timedwait(&over, &end, &until) != 0)
            abort();
    pthread_mutex_unlock(&end);
    return unused;
}

static void *source(void *unused)
{
    for (int i = 0; i < 3; i++)
        fill();
    return unused;
}

static void *sink(void *unused)
{
    for (int i = 0; i < 3; i++)
        drain();
    pthread_mutex_lock(&end);
    done = 1;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&end);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, watch, NULL);
    pthread_create(&threads[2], NULL, sink, NULL);
    usleep(10000);
    pthread_create(&threads[1], NULL, source, NULL);
    pthread_join(threads[1], NULL);
    pthread_join(threads[2], NULL);
    pthread_join(threads[0], NULL);
    return 0;
}
