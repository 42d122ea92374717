/* Two threads take two wrapped locks, in one order, and give one of them back for a while. */
#include "wrapped_locks.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct socket {
    Lock readlock;
    int bytes;
};

static Lock table_lock;
static Condition filled;
static struct socket *sockets;

static void *reads(void *arg)
{
    struct socket *sock = arg;
    lock_take(&table_lock);
    condition_await(&filled, &table_lock, 1);
    lock_take(&sock->readlock);
    sock->bytes++;
    lock_give(&sock->readlock);
    lock_give(&table_lock);
    return NULL;
}

int main(void)
{
    pthread_t first, second;
    sockets = calloc(1, sizeof *sockets);
    if (sockets == NULL || lock_make(&table_lock) != 0 || lock_make(&sockets->readlock) != 0
        || condition_make(&filled) != 0)
        return 1;
    pthread_create(&first, NULL, reads, sockets);
    pthread_create(&second, NULL, reads, sockets);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("%d\n", sockets->bytes);
    return 0;
}
