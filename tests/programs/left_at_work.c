// Two workers rest, work, and rest again. Who ends them says so before it has waited for both to rest: one of them leaves
// at work, and is waited for. The other one was woken too late for any work, and rests again, as it should.
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resume = PTHREAD_COND_INITIALIZER;
static volatile bool resting = true, ended;
static volatile int at_rest;

static void *worker(void *unused) {
    (void)unused;
    while (true) {
        pthread_mutex_lock(&mutex);
        at_rest++;
        while (resting)
            pthread_cond_wait(&resume, &mutex);
        at_rest--;
        usleep(40000);
        pthread_mutex_unlock(&mutex);
        do {
            if (ended)
                return NULL;
            sched_yield();
        } while (!resting);
    }
}

static void wake(void) {
    while (at_rest < 2)
        sched_yield();
    pthread_mutex_lock(&mutex);
    resting = false;
    pthread_mutex_unlock(&mutex);
    pthread_cond_broadcast(&resume);
}

int main(void) {
    pthread_t workers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, worker, NULL);
    wake();
    usleep(20000);
    resting = true;
    ended = true;
    wake();
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
