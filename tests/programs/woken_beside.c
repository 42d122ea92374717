/* Who waits until nothing is left wakes the server first, where it finds it asleep. Here it comes too early for that; whether
 * the server sleeps has nothing to do with what it waits for. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t empty = PTHREAD_COND_INITIALIZER;
static int asleep, told, left;

static void *serve(void *unused)
{
    (void)unused;
    usleep(20000);
    pthread_mutex_lock(&lock);
    asleep = 1;
    while (!told)
        pthread_cond_wait(&work, &lock);
    left = 0;
    pthread_cond_signal(&empty);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void flush(void)
{
    pthread_mutex_lock(&lock);
    left = 1;
    if (asleep) {
        told = 1;
        pthread_cond_signal(&work);
    }
    while (left)
        pthread_cond_wait(&empty, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    pthread_t server;
    pthread_create(&server, NULL, serve, NULL);
    flush();
    pthread_join(server, NULL);
    return 0;
}
