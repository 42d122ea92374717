// Weak symbols, aliases, functions chosen when the program is loaded, functions for several
// processors, hidden names.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

int missing(void) __attribute__((weak));
__attribute__((weak)) int replaceable(int value) { return value + 1; }
int original(int value) { return value * 3; }
int renamed(int value) __attribute__((alias("original")));
int weakly(int value) __attribute__((weak, alias("original")));
int counter = 4;
extern int same_counter __attribute__((alias("counter")));

static int slow(int value) { return value + 100; }
static int fast(int value) { return value + 200; }
static int (*choose(void))(int) { return sizeof(long) == 8 ? fast : slow; }
int chosen(int value) __attribute__((ifunc("choose")));

__attribute__((target("default"))) int versioned(int value) { return value ^ 1; }
__attribute__((target("avx2"))) int versioned_wide(int value) { return value ^ 1; }
__attribute__((visibility("hidden"))) int hidden(int value) { return value - 7; }
static inline __attribute__((always_inline)) int inlined(int value) { return value << 2; }
__attribute__((noinline, cold)) static int cold(int value) { return value / 2; }

static void *work(void *argument) {
    int id = *(int *)argument;
    int got = replaceable(id) + renamed(id + 1) + weakly(id + 2) + chosen(id) + versioned(id);
    got += hidden(id) + inlined(id) + cold(9 + id);
    if (missing != NULL) {
        got += missing();
    }
    pthread_mutex_lock(&lock);
    total += got;
    same_counter += id + 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int ids[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &ids[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d %d\n", total, counter);
    return counter == 7 ? 0 : 1;
}
