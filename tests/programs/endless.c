/* A service that never ends. Two workers look for room and take it in two critical sections, the first rounds only. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int room = 1;

static void give(void) {
    pthread_mutex_lock(&lock);
    room++;
    pthread_mutex_unlock(&lock);
}

static void take(void) {
#ifdef MENDED
    pthread_mutex_lock(&lock);
    int there = room > 0;
#else
    pthread_mutex_lock(&lock);
    int there = room > 0;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    if (there) {
        room--;
        assert(room >= 0);
    }
    pthread_mutex_unlock(&lock);
    if (there)
        give();
}

static void idle(void) {
    pthread_mutex_lock(&lock);
    room = room ? 1 : 0;
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused) {
    for (int round = 0;; round++)
        if (round < 200)
            take();
        else
            idle();
    return unused;
}

int main(int count, char **arguments) {
    pthread_t workers[2];
    for (int i = 0; i < (count > 1 ? 1 : 2); i++)
        pthread_create(&workers[i], 0, work, arguments);
    pthread_join(workers[0], 0);
}
