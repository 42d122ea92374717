/* A queue whose end is announced without its mutex: the announcement can come between the look and the wait.
 * The first argument says how many things go through it. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting;
static int closed;
static long taken;

static void *take(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (waiting == 0 && !closed) pthread_cond_wait(&changed, &lock);
        if (waiting == 0) {
            pthread_mutex_unlock(&lock);
            return unused;
        }
        waiting--;
        taken++;
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv)
{
    int all = argc > 1 ? atoi(argv[1]) : 10;
    pthread_t taker;

    pthread_create(&taker, NULL, take, NULL);
    for (int i = 0; i < all; i++) {
        pthread_mutex_lock(&lock);
        waiting++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    closed = 1;
    pthread_cond_signal(&changed);
    pthread_join(taker, NULL);
    return taken != all;
}
