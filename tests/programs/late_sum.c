/* Who finds nothing makes it: both workers may. What comes of that is seen when thousands of sums were made. */
#include <assert.h>
#include <pthread.h>

enum { WORKERS = 3, ROUNDS = 1500 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int made;
static int there;
static long total;

static int look(void) {
    pthread_mutex_lock(&lock);
    int found = there;
    pthread_mutex_unlock(&lock);
    return found;
}

static void *work(void *unused) {
    if (!look()) {
        pthread_mutex_lock(&lock);
        made++;
        there = 1;
        pthread_mutex_unlock(&lock);
    }
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        total += made;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], 0, work, 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], 0);
    assert(total <= (long)WORKERS * ROUNDS);
}
