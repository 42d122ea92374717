/* Pages mapped, given back in parts, moved, grown and mapped over, while another thread works in
 * them. A byte is known from the first read on: nothing is left to the log but what a file holds. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ROUNDS = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long *given;
static int over;

/* Doubles the number that it is given, whatever it lies in. */
static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!over) {
        if (given) {
            *given *= 2;
            given = NULL;
            pthread_cond_broadcast(&changed);
        } else {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static long doubled(long *number)
{
    pthread_mutex_lock(&lock);
    given = number;
    pthread_cond_broadcast(&changed);
    while (given)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return *number;
}

static char *pages(void *at, int count, int fixed)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0);
    char *map = mmap(at, (size_t)count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert(map != MAP_FAILED);
    return map;
}

/* The same addresses again and again, and zeros each time. */
static void again(void)
{
    char *place = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        char *map = pages(place, 1, place != NULL);
        long *number = (long *)(map + 64);
        assert(*number == 0);
        *number = i + 1;
        assert(doubled(number) == 2 * (i + 1));
        munmap(map, PAGE);
        place = map;
    }
}

/* A hole in the middle, which is mapped once more, and the neighbours of it. */
static void parts(void)
{
    char *map = pages(NULL, 4, 0);
    long *low = (long *)(map + 8), *middle = (long *)(map + PAGE + 8), *high = (long *)(map + 3 * PAGE);
    *low = 3, *middle = 4, *high = 5;
    munmap(map + PAGE, 2 * PAGE);
    assert(doubled(low) == 6 && doubled(high) == 10);
    assert(pages(map + PAGE, 2, 1) == map + PAGE && *middle == 0);
    *middle = 7;
    assert(doubled(middle) == 14 && *low == 6);
    /* Over all of it: zeros again, and neighbours in steps. */
    pages(map, 2, 1);
    pages(map + 2 * PAGE, 2, 1);
    assert(*low == 0 && *high == 0);
    memset(map + 2 * PAGE - 8, 1, 16);
    assert(doubled((long *)(map + 2 * PAGE - 4)) == 0x0202020202020202);
    munmap(map, 4 * PAGE);
}

static void moved(void)
{
    char *map = pages(NULL, 2, 0);
    long *number = (long *)(map + PAGE + 16);
    *number = 21;
    munmap(map + PAGE, 0);
    map = mremap(map, 2 * PAGE, PAGE, 0);
    map = mremap(map, PAGE, 4 * PAGE, MREMAP_MAYMOVE);
    assert(map != MAP_FAILED);
    number = (long *)(map + 3 * PAGE);
    assert(*number == 0);
    *number = 22;
    *(long *)map = 23;
    /* Somewhere else for certain. */
    char *room = pages(NULL, 8, 0);
    map = mremap(map, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    assert(map == room && *(long *)(map + 5 * PAGE) == 0);
    assert(doubled((long *)(map + 3 * PAGE)) == 44 && doubled((long *)map) == 46);
    munmap(map, 8 * PAGE);
}

static void file(void)
{
    FILE *file = tmpfile();
    long numbers[2] = { 31, 32 };
    assert(file && fwrite(numbers, sizeof numbers, 1, file) == 1 && fflush(file) == 0);
    for (int i = 0; i < 2; i++) {
        long *map = mmap64(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
        assert(map != MAP_FAILED && map[0] == 31 << i);
        assert(doubled(map) == 62 << i && map[1] == 32);
        munmap(map, 100);
    }
    fclose(file);
}

static void *on_own_stack(void *argument)
{
    long number = *(long *)argument;
    assert(doubled(&number) == 82);
    return NULL;
}

/* A thread whose stack the program mapped. */
static void stack(void)
{
    enum { SIZE = 64 * PAGE };
    char *map = pages(NULL, SIZE / PAGE, 0);
    long number = 41;
    pthread_attr_t how;
    pthread_t thread;
    pthread_attr_init(&how);
    assert(pthread_attr_setstack(&how, map, SIZE) == 0);
    assert(pthread_create(&thread, &how, on_own_stack, &number) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&how);
    munmap(map, SIZE);
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    again();
    parts();
    moved();
    file();
    stack();
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(worker, NULL);
    /* More than there is: only what is touched costs anything. */
    char *large = mmap(NULL, 1ul << 36, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(large != MAP_FAILED && large[1ul << 35] == 0);
    large[1ul << 35] = 1;
    munmap(large, 1ul << 36);
    assert(munmap((void *)1, PAGE) != 0 && mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    return 0;
}
