// Options that change what code is made, or how it is put together.
//~ LEVELS: -Og -fPIC; -Os -fomit-frame-pointer; -Oz -g0 -fno-pie -no-pie; -O3 -march=native; -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2; -O2 -fvisibility=hidden -ffunction-sections -fdata-sections -Wl,--gc-sections; -O1 -fno-pie -no-pie -mcmodel=medium; -O2 -mcmodel=large -fno-exceptions -funroll-loops
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int table[64];
static char name[32];
static const char *const words[] = {"one", "three", "seven", "eleven"};
int visible = 3;

__attribute__((noinline)) static int hash(const char *text) {
    unsigned value = 5381;
    while (*text != 0) {
        value = value * 33 + (unsigned char)*text++;
    }
    return (int)(value % 64);
}

static int by_length(const void *left, const void *right) {
    const char *const *a = left, *const *b = right;
    return (int)strlen(*a) - (int)strlen(*b);
}

static void *work(void *argument) {
    long id = (long)argument;
    char text[40];
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%s-%ld", words[i], id);
        pthread_mutex_lock(&lock);
        table[hash(text)] += (int)id + i;
        visible += (int)strlen(text);
        strcpy(name, text);
        pthread_mutex_unlock(&lock);
    }
    int *copy = malloc(sizeof table);
    if (copy == NULL) {
        abort();
    }
    pthread_mutex_lock(&lock);
    memcpy(copy, table, sizeof table);
    pthread_mutex_unlock(&lock);
    long sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += copy[i] * copy[i];
    }
    free(copy);
    return (void *)(sum > 0 ? id : -1);
}

int main(void) {
    pthread_t threads[2];
    void *result;
    long sum = 0;
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    const char *sorted[4];
    memcpy(sorted, words, sizeof sorted);
    qsort(sorted, 4, sizeof sorted[0], by_length);
    int total = 0;
    for (int i = 0; i < 64; i++) {
        total += table[i];
    }
    printf("%ld %d %d %s\n", sum, total, visible, sorted[3]);
    return sum == 3 && strlen(name) > 4 ? 0 : 1;
}
