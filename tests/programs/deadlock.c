/* Two threads take two locks in opposite orders, slowly enough to meet. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER;
static int moved, booked;

static void *move(void *argument)
{
    pthread_mutex_lock(&stock);
    usleep(100000);
    pthread_mutex_lock(&orders);
    moved++;
    pthread_mutex_unlock(&orders);
    pthread_mutex_unlock(&stock);
    return argument;
}

static void *book(void *argument)
{
    pthread_mutex_lock(&orders);
    usleep(100000);
    pthread_mutex_lock(&stock);
    booked++;
    pthread_mutex_unlock(&stock);
    pthread_mutex_unlock(&orders);
    return argument;
}

int main(void)
{
    pthread_t mover, clerk;
    pthread_create(&mover, NULL, move, NULL);
    pthread_create(&clerk, NULL, book, NULL);
    pthread_join(mover, NULL);
    pthread_join(clerk, NULL);
    printf("%d %d\n", moved, booked);
    return 0;
}
