/* Two workers empty a box whenever it is scheduled. A message that comes between the worker's last look
 * and its note that the box is not scheduled any more stays in the box, and main waits for it for ever.
 * The workers have nothing to do then. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_jobs = PTHREAD_COND_INITIALIZER;
static int jobs;

static pthread_mutex_t box_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_received = PTHREAD_COND_INITIALIZER;
static int box, received;
static atomic_int scheduled;

static void send_message(void)
{
    pthread_mutex_lock(&box_lock);
    box++;
    pthread_mutex_unlock(&box_lock);
    if (atomic_exchange(&scheduled, 1))
        return;
    pthread_mutex_lock(&jobs_lock);
    jobs++;
    pthread_cond_signal(&has_jobs);
    pthread_mutex_unlock(&jobs_lock);
}

static int receive(void)
{
    int some = 0;

    pthread_mutex_lock(&box_lock);
    if (box > 0) {
        box--;
        some = 1;
        if (++received == 2)
            pthread_cond_signal(&all_received);
    }
    pthread_mutex_unlock(&box_lock);
    return some;
}

static void *worker(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&jobs_lock);
        while (jobs == 0)
            pthread_cond_wait(&has_jobs, &jobs_lock);
        jobs--;
        pthread_mutex_unlock(&jobs_lock);
        while (receive())
            continue;
        usleep(200000);
        atomic_store(&scheduled, 0);
    }
    return argument;
}

int main(void)
{
    pthread_t workers[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, worker, NULL);
    usleep(100000);
    send_message();
    usleep(100000);
    send_message();
    pthread_mutex_lock(&box_lock);
    while (received < 2)
        pthread_cond_wait(&all_received, &box_lock);
    pthread_mutex_unlock(&box_lock);
    return 0;
}
