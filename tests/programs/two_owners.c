/* A reference is taken after the lock of the lookup was given back: both threads drop what they take to
 * be the last one, and whoever comes second finds the entry gone. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int references = 1;
static int listed = 1;

static void drop(void) {
    if (__atomic_sub_fetch(&references, 1, __ATOMIC_SEQ_CST) > 0) {
        return;
    }
    usleep(100000);
    pthread_mutex_lock(&lock);
    assert(listed);
    listed = 0;
    pthread_mutex_unlock(&lock);
}

static void *closer(void *unused) {
    (void)unused;
    usleep(20000);
    drop();
    return NULL;
}

static void *sender(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    int found = listed;
    pthread_mutex_unlock(&lock);
    if (found) {
        usleep(50000);
        __atomic_add_fetch(&references, 1, __ATOMIC_SEQ_CST);
        drop();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, sender, NULL);
    pthread_create(&threads[1], NULL, closer, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
