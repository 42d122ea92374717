#include "queue.h"

void queue_init(struct queue *queue)
{
    pthread_mutex_init(&queue->lock, 0);
    pthread_cond_init(&queue->changed, 0);
    queue->first = queue->count = 0;
}

void queue_put(struct queue *queue, int item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == QUEUE_ROOM)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->items[(queue->first + queue->count++) % QUEUE_ROOM] = item;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

int queue_take(struct queue *queue)
{
    int item;
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0)
        pthread_cond_wait(&queue->changed, &queue->lock);
    item = queue->items[queue->first];
    queue->first = (queue->first + 1) % QUEUE_ROOM;
    queue->count--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void queue_destroy(struct queue *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}
