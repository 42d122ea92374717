/* A queue lock (Mellor-Crummey and Scott): every thread waits on a node of its own, which lies in its thread-local
 * memory and which the thread before it in the queue knows. The counter is read and written in two critical
 * sections. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct node {
    struct node *_Atomic next;
    atomic_int waits;
};
static _Thread_local struct node mine;
static struct node *_Atomic tail;
static int counter;

static void take(void) {
    atomic_store(&mine.next, NULL);
    struct node *before = atomic_exchange(&tail, &mine);
    if (before != NULL) {
        atomic_store(&mine.waits, 1);
        atomic_store(&before->next, &mine);
        while (atomic_load(&mine.waits)) {
        }
    }
}

static void give_back(void) {
    if (atomic_load(&mine.next) == NULL) {
        struct node *last = &mine;
        if (atomic_compare_exchange_strong(&tail, &last, NULL))
            return;
        while (atomic_load(&mine.next) == NULL) {
        }
    }
    atomic_store(&atomic_load(&mine.next)->waits, 0);
}

static void *count(void *argument) {
    for (int i = 0; i < 3; i++) {
        take();
        int seen = counter;
        give_back();
        take();
        counter = seen + 1;
        give_back();
    }
    return argument;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(counter == 9);
    return 0;
}
