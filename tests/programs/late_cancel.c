/* Workers run tasks from a queue, while another thread cancels some. Whether each was run or cancelled is checked at the end.
 * A task that is cancelled may have begun since it was looked at. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS 240
#define WORKERS 3

enum state { QUEUED, RUNNING, FINISHED, CANCELLED };

struct task {
    pthread_mutex_t lock;
    enum state state;
    int runs;
};

static struct task tasks[TASKS];
static int queue[TASKS], head, tail, stopped;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_news = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t totals = PTHREAD_MUTEX_INITIALIZER;
static int ran, cancelled;

static void submit(int number)
{
    pthread_mutex_lock(&queue_lock);
    queue[tail++] = number;
    pthread_cond_signal(&queue_news);
    pthread_mutex_unlock(&queue_lock);
}

static int take(void)
{
    pthread_mutex_lock(&queue_lock);
    while (head == tail && !stopped)
        pthread_cond_wait(&queue_news, &queue_lock);
    int number = head == tail ? -1 : queue[head++];
    pthread_mutex_unlock(&queue_lock);
    return number;
}

static void *worker(void *unused)
{
    (void)unused;
    for (int number = take(); number >= 0; number = take()) {
        struct task *task = &tasks[number];
        pthread_mutex_lock(&task->lock);
        int runs = task->state != CANCELLED;
        if (runs)
            task->state = RUNNING; /* begins */
        pthread_mutex_unlock(&task->lock);
        if (!runs)
            continue;
        task->runs++;
        pthread_mutex_lock(&task->lock);
        task->state = FINISHED;
        pthread_mutex_unlock(&task->lock);
        pthread_mutex_lock(&totals);
        ran++;
        pthread_mutex_unlock(&totals);
    }
    return NULL;
}

static void cancel(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    int is_queued = task->state == QUEUED; /* looks */
    pthread_mutex_unlock(&task->lock);
    if (!is_queued)
        return;
    sched_yield();
    pthread_mutex_lock(&task->lock);
    task->state = CANCELLED; /* cancels */
    pthread_mutex_unlock(&task->lock);
    pthread_mutex_lock(&totals);
    cancelled++;
    pthread_mutex_unlock(&totals);
}

static void *canceller(void *unused)
{
    (void)unused;
    for (int number = 0; number < TASKS; number += 9) {
        cancel(&tasks[number]);
        sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS + 1];
    for (int number = 0; number < TASKS; number++)
        pthread_mutex_init(&tasks[number].lock, NULL);
    for (int number = 0; number < WORKERS; number++)
        pthread_create(&threads[number], NULL, worker, NULL);
    pthread_create(&threads[WORKERS], NULL, canceller, NULL);
    for (int number = 0; number < TASKS; number++)
        submit(number);
    pthread_join(threads[WORKERS], NULL);
    pthread_mutex_lock(&queue_lock);
    stopped = 1;
    pthread_cond_broadcast(&queue_news);
    pthread_mutex_unlock(&queue_lock);
    for (int number = 0; number < WORKERS; number++)
        pthread_join(threads[number], NULL);
    if (ran + cancelled != TASKS) {
        fprintf(stderr, "%d ran and %d were cancelled\n", ran, cancelled);
        return 3;
    }
    return 0;
}
