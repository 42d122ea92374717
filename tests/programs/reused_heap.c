/* Workers that neither allocate nor free write to objects that the initial thread frees afterwards
 * and whose memory one larger object then takes: only the times of their other calls tell which
 * object a worker meant. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 24, LARGE = 4096 };

struct job {
    long state;
    char room[128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *jobs[JOBS];
static int posted, done, over;

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!over) {
        if (done < posted) {
            jobs[done]->state = 2;
            done++;
            pthread_cond_broadcast(&changed);
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = calloc(1, sizeof *jobs[i]);
        jobs[i]->state = 1;
    }
    posted = JOBS;
    pthread_cond_broadcast(&changed);
    while (done < JOBS)
        pthread_cond_wait(&changed, &lock);
    for (int i = 0; i < JOBS; i++)
        assert(jobs[i]->state == 2);
    for (int i = 0; i < JOBS; i++)
        free(jobs[i]);
    char *large = malloc(LARGE);
    memset(large, 3, LARGE);
    over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    assert(large[LARGE - 1] == 3);
    free(large);
    return 0;
}
