/* A bounded queue of numbers: the library that all projects here build. */
#ifndef QUEUE_H
#define QUEUE_H

#include <pthread.h>

#define QUEUE_ROOM 4

#ifdef __cplusplus
extern "C" {
#endif

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int items[QUEUE_ROOM];
    int first, count;
};

void queue_init(struct queue *queue);
void queue_put(struct queue *queue, int item);
int queue_take(struct queue *queue);
void queue_destroy(struct queue *queue);

/* In weigh.cc, with a C++ container. */
int weigh(int item);
/* In twist.S. */
int twist(int item);

#ifdef __cplusplus
}
#endif
#endif
