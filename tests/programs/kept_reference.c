/* Who adds an item keeps where it lies, and an array that grows for another item lies elsewhere. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
    long id, references;
};

static struct item *items;
static size_t used, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct item *add(long id) {
    pthread_mutex_lock(&lock);
    if (used == room) {
        struct item *larger = malloc(2 * (room + 1) * sizeof *larger);
        if (used > 0) memcpy(larger, items, used * sizeof *larger);
        free(items); /* freed */
        items = larger;
        room = 2 * (room + 1);
    }
    struct item *item = &items[used++];
    *item = (struct item){id, 0};
    pthread_mutex_unlock(&lock);
    return item;
}

static void *keep(void *unused) {
    (void)unused;
    struct item *item = add(7);
    usleep(50000);
    assert(item->id == 7); /* used */
    return NULL;
}

static void *grow(void *unused) {
    (void)unused;
    usleep(20000);
    for (long id = 100; id < 104; id++) add(id);
    /* What the array was in is given to somebody else. */
    long *others = malloc(2 * sizeof(struct item));
    if (others != NULL) memset(others, 1, 2 * sizeof(struct item));
    free(others);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, keep, NULL);
    pthread_create(&threads[1], NULL, grow, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
