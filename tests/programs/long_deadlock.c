/* Clerks who move goods between shelves, always the lower one first, many times; at the end two of them
 * put two shelves right, each the other way round. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SHELVES 4

static struct shelf {
    pthread_mutex_t lock;
    int goods;
} shelves[SHELVES];
static pthread_barrier_t tidied;
static int rounds;

static void move(int from, int to) {
    struct shelf *first = &shelves[from < to ? from : to];
    struct shelf *second = &shelves[from < to ? to : from];
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    shelves[from].goods--;
    shelves[to].goods++;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static void put_right(int one, int other) {
    pthread_mutex_lock(&shelves[one].lock);
    usleep(200000);
    pthread_mutex_lock(&shelves[other].lock);
    shelves[one].goods = shelves[other].goods = 0;
    pthread_mutex_unlock(&shelves[other].lock);
    pthread_mutex_unlock(&shelves[one].lock);
}

static void *clerk(void *argument) {
    int number = (int)(long)argument;
    for (int round = 0; round < rounds; round++)
        move((round + number) % SHELVES, (round + 1 + 2 * number) % SHELVES);
    pthread_barrier_wait(&tidied);
    if (number == 0)
        put_right(0, 1);
    else
        put_right(1, 0);
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t clerks[2];
    for (int i = 0; i < SHELVES; i++)
        pthread_mutex_init(&shelves[i].lock, NULL);
    pthread_barrier_init(&tidied, NULL, 2);
    for (long i = 0; i < 2; i++)
        pthread_create(&clerks[i], NULL, clerk, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(clerks[i], NULL);
    for (int i = 0; i < SHELVES; i++)
        printf("%d\n", shelves[i].goods);
    return 0;
}
