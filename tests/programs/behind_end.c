// A thread damages what libc keeps of freed memory, which libc sees when it cleans up behind the thread.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static void *worker(void *unused) {
    volatile uintptr_t *kept = malloc(24);
    free((void *)kept);
    kept[0] = 1;
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_join(thread, 0);
}
