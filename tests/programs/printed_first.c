/* What is printed is read before the other thread writes it; both meet at a barrier after that. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static int total;

static void *add(void *unused) {
    usleep(20000);
    total = 10;
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *print(void *unused) {
    printf("total: %d\n", total);
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&threads[0], NULL, add, NULL);
    pthread_create(&threads[1], NULL, print, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
