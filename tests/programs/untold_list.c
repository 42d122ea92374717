/* A connection is given back through functions that know a list and nothing of the pool, and nobody is told: that somebody
 * waits was asked when it was taken. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct link {
    struct link *next;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    struct link *idle;
    int waiters;
};

static void push(struct link **head, struct link *link)
{
    link->next = *head;
    *head = link;
}

static void get(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->waiters++;
    while (!pool->idle)
        pthread_cond_wait(&pool->returned, &pool->lock);
    pool->waiters--;
    pool->idle = pool->idle->next;
    pthread_mutex_unlock(&pool->lock);
}

static void check(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct link *link = pool->idle;
    pool->idle = link->next;
    int waiting = pool->waiters;
    pthread_mutex_unlock(&pool->lock);
    usleep(20000);
    pthread_mutex_lock(&pool->lock);
    push(&pool->idle, link);
    if (waiting)
        pthread_cond_signal(&pool->returned);
    pthread_mutex_unlock(&pool->lock);
}

static void *checker(void *pool)
{
    check(pool);
    return pool;
}

int main(void)
{
    struct pool *pool = calloc(1, sizeof *pool);
    pthread_mutex_init(&pool->lock, 0);
    pthread_cond_init(&pool->returned, 0);
    push(&pool->idle, calloc(1, sizeof(struct link)));
    pthread_t thread;
    pthread_create(&thread, 0, checker, pool);
    usleep(10000);
    get(pool);
    pthread_join(thread, 0);
    return 0;
}
