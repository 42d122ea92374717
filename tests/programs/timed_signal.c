/*
 * A caller waits for a signal, a second at most, and looks at nothing before: what is told before it waits is lost.
 */
#include <assert.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t line = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

static void *reply(void *unused)
{
    pthread_mutex_lock(&line);
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&line);
    return unused;
}

int main(void)
{
    pthread_t server;
    struct timespec until;
    int late;

    pthread_create(&server, NULL, reply, NULL);
    usleep(20000); /* the caller has something else to do */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&line);
    late = pthread_cond_timedwait(&answered, &line, &until);
    pthread_mutex_unlock(&line);
    pthread_join(server, NULL);
    assert(late == 0);
    return 0;
}
