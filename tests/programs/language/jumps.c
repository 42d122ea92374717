// setjmp and longjmp: within a function, across frames, out of callbacks, in several threads.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shared;

struct parser {
    jmp_buf failed;
    int depth;
};

__attribute__((noinline)) static int parse(struct parser *parser, int left) {
    parser->depth++;
    if (left == 3) {
        longjmp(parser->failed, parser->depth);
    }
    if (left == 0) {
        return 0;
    }
    return parse(parser, left - 1) + 1;
}

static int attempt(int length) {
    struct parser parser = {.depth = 0};
    volatile int before = length;
    int code = setjmp(parser.failed);
    if (code != 0) {
        return 100 + code + before;
    }
    return parse(&parser, length);
}

static jmp_buf out_of_sort;
static int compare(const void *left, const void *right) {
    int a = *(const int *)left;
    int b = *(const int *)right;
    if (a == 42 || b == 42) {
        longjmp(out_of_sort, 42);
    }
    return (a > b) - (a < b);
}

static int sort(void) {
    int values[] = {7, 1, 42, 3};
    int code = setjmp(out_of_sort);
    if (code != 0) {
        return code;
    }
    qsort(values, 4, sizeof values[0], compare);
    return values[0];
}

static int loop(void) {
    jmp_buf again;
    volatile int count = 0;
    int code = setjmp(again);
    count = count + 1;
    if (count < 5) {
        longjmp(again, count);
    }
    return count * 10 + code;
}

static int masked(void) {
    sigjmp_buf place;
    volatile int rounds = 0;
    if (sigsetjmp(place, 1) == 0) {
        rounds = 1;
    }
    if (rounds++ < 3) {
        siglongjmp(place, 1);
    }
    return rounds;
}

// Zero for the value is changed to one.
static int zero(void) {
    jmp_buf place;
    int code = _setjmp(place);
    if (code == 0) {
        _longjmp(place, 0);
    }
    return code;
}

static void *work(void *argument) {
    int first = *(int *)argument;
    for (int length = first; length < first + 4; length++) {
        int got = attempt(length);
        pthread_mutex_lock(&lock);
        shared += got;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int firsts[2] = {0, 2};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &firsts[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d %d %d %d %d\n", shared, sort(), loop(), masked(), zero());
    return 0;
}
