/* Two bugs: a thread uses a table that is not there yet, and tellers take two locks in two orders. -DTABLE_FIXED mends the
   first. */
#include <pthread.h>

struct account {
    pthread_mutex_t lock;
    int cents;
};

static struct account here = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account there = {PTHREAD_MUTEX_INITIALIZER, 100};
static int rates[4] = {1, 2, 3, 4};
static int *table;
static int total;

static void *convert(void *unused)
{
    for (int i = 0; i < 4; i++)
        total += table[i];
    return unused;
}

static void *send(void *sender)
{
    struct account *from = sender, *to = from == &here ? &there : &here;
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&from->lock);
        pthread_mutex_lock(&to->lock);
        from->cents--;
        to->cents++;
        pthread_mutex_unlock(&to->lock);
        pthread_mutex_unlock(&from->lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
#ifdef TABLE_FIXED
    table = rates;
#endif
    pthread_create(&threads[0], NULL, convert, NULL);
#ifndef TABLE_FIXED
    table = rates;
#endif
    pthread_create(&threads[1], NULL, send, &here);
    pthread_create(&threads[2], NULL, send, &there);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
