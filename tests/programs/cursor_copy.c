/* The reader copies a cursor as a whole, under the lock under which the item that it leads to is replaced. What it
 * crashes at is another pointer, which the updater clears between check and use. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct item {
    long version, pad[4];
};

struct cursor {
    struct item *item;
    long at, length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cursor table;
static long most = 1000;
static long *limit = &most;

static void *update(void *unused)
{
    for (long version = 1; version <= 30; version++) {
        pthread_mutex_lock(&lock);
        free(table.item);
        table.item = malloc(sizeof *table.item);
        table.item->version = version;
        pthread_mutex_unlock(&lock);
        limit = NULL;
        limit = &most;
    }
    return unused;
}

static void *watch(void *unused)
{
    struct cursor here;
    long sum = 0;
    here.item = NULL;
    for (int round = 0; round < 30; round++) {
        pthread_mutex_lock(&lock);
        here = table;
        sum += here.item->version;
        pthread_mutex_unlock(&lock);
        if (limit != NULL)
            sum += *limit;
    }
    fprintf(stderr, "seen %ld\n", sum);
    return unused;
}

int main(void)
{
    pthread_t updater, watcher;
    table.item = calloc(1, sizeof *table.item);
    pthread_create(&updater, NULL, update, NULL);
    pthread_create(&watcher, NULL, watch, NULL);
    pthread_join(updater, NULL);
    pthread_join(watcher, NULL);
    free(table.item);
    return 0;
}
