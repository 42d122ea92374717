/*
 * Three doors count visitors in one number, some hundred each.
 *
 * NO_PATCH: without a lock. LOCKED: with it. ONCE_WITHOUT: with it but for one visitor of one door, which hardly ever
 * fails by itself.
 */
#include <assert.h>
#include <pthread.h>

enum { DOORS = 3, VISITORS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;

/* Does this door take the lock for this visitor? */
static int locks(int door, int visitor)
{
#if defined(LOCKED)
    return door >= 0 && visitor >= 0;
#elif defined(ONCE_WITHOUT)
    return door != 1 || visitor != VISITORS / 2;
#else
    return door < 0 || visitor < 0;
#endif
}

static void *count(void *number)
{
    int door = *(int *)number;
    for (int visitor = 0; visitor < VISITORS; visitor++) {
        if (locks(door, visitor))
            pthread_mutex_lock(&lock);
        int before = *(volatile int *)&inside;
        *(volatile int *)&inside = before + 1;
        if (locks(door, visitor))
            pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t doors[DOORS];
    int numbers[DOORS] = { 0, 1, 2 };

    for (int door = 0; door < DOORS; door++)
        pthread_create(&doors[door], NULL, count, &numbers[door]);
    for (int door = 0; door < DOORS; door++)
        pthread_join(doors[door], NULL);
    assert(inside == DOORS * VISITORS);
    return 0;
}
