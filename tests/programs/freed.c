/* A reader looks at a list that was freed: what is there then is the allocator's. It checks that itself, or with
 * LATER another thread does. */

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct list {
    long first;
    long count;
};

static struct list *list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int looks;
static long seen;

static void *count(void *unused)
{
    (void)unused;
    struct list *mine = list;
    usleep(50000);
    pthread_mutex_lock(&lock);
    looks++;
    pthread_mutex_unlock(&lock);
#ifdef LATER
    seen = mine->count;
#else
    assert(mine->count == 3);
#endif
    return NULL;
}

int main(void)
{
    pthread_t reader;

    list = malloc(sizeof *list);
    list->first = 1;
    list->count = 3;
    pthread_create(&reader, NULL, count, NULL);
    usleep(20000);
    free(list);
    pthread_join(reader, NULL);
#ifdef LATER
    assert(seen == 3);
#endif
    return 0;
}
