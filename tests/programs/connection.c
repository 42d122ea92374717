/* Who finds no connection makes one. LOCKED looks and makes it in one critical section, APART in two. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int current, made;

static int connection(void) {
    pthread_mutex_lock(&lock);
    int found = current;
#ifndef LOCKED
    pthread_mutex_unlock(&lock);
#endif
    if (found == 0) {
#ifndef LOCKED
        pthread_mutex_lock(&lock);
#endif
        current = found = ++made;
#ifndef LOCKED
        pthread_mutex_unlock(&lock);
#endif
    }
#ifdef LOCKED
    pthread_mutex_unlock(&lock);
#endif
    return found;
}

static void *work(void *argument) {
    *(int *)argument = connection();
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int got[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &got[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(got[0] == got[1]);
    return 0;
}
