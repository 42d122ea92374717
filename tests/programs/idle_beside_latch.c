// Two workers wait for jobs, as they should. Who hands a job in waits for a latch whose flag is set without the lock
// under which it is looked at.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { WORKERS = 2, JOBS = 3 };

struct latch {
    atomic_bool is_set;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static struct latch *waiting;
static bool over;
static pthread_mutex_t jobs = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_available = PTHREAD_COND_INITIALIZER;

static void set(struct latch *latch) {
    atomic_store(&latch->is_set, true);
    pthread_cond_broadcast(&latch->changed);
}

static void wait_for(struct latch *latch) {
    pthread_mutex_lock(&latch->lock);
    while (!atomic_load(&latch->is_set))
        pthread_cond_wait(&latch->changed, &latch->lock);
    pthread_mutex_unlock(&latch->lock);
}

static struct latch *take(void) {
    pthread_mutex_lock(&jobs);
    while (!waiting && !over)
        pthread_cond_wait(&work_available, &jobs);
    struct latch *latch = waiting;
    waiting = NULL;
    pthread_mutex_unlock(&jobs);
    return latch;
}

static void tell(struct latch *latch, bool last) {
    pthread_mutex_lock(&jobs);
    waiting = latch;
    over = last;
    pthread_cond_broadcast(&work_available);
    pthread_mutex_unlock(&jobs);
}

static void *work(void *unused) {
    for (struct latch *latch; (latch = take());)
        set(latch);
    return unused;
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 0; i < JOBS; i++) {
        struct latch latch = {false, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
        tell(&latch, false);
        wait_for(&latch);
    }
    tell(NULL, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
