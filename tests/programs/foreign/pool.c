#include "pool.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static job work;
static void **items;
static int count, next;

static void *run(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        void *item = next < count ? items[next++] : 0;
        pthread_mutex_unlock(&lock);
        if (!item)
            return unused;
        work(item);
    }
}

void pool_run(job wanted, void **all, int n)
{
    pthread_t threads[2];

    work = wanted;
    items = all;
    count = n;
    next = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}

void pool_locked(job visit, void *item)
{
    pthread_mutex_lock(&lock);
    visit(item);
    pthread_mutex_unlock(&lock);
}
