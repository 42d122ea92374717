// The thread is told only without an argument: with one each run hangs.
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    if (count == 1) {
        pthread_mutex_lock(&lock);
        ready = 1;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&changed);
    }
    pthread_join(thread, NULL);
    return 0;
}
