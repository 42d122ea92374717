// Variable arguments: passed on, copied, of many types, through pointers to functions.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sums[2];

struct point {
    double x, y;
};
struct large {
    long values[5];
};

static long sum_list(int count, va_list list) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += va_arg(list, int);
    }
    return sum;
}

__attribute__((noinline)) static long sum(int count, ...) {
    va_list list, copy;
    va_start(list, count);
    va_copy(copy, list);
    long first = sum_list(count, list);
    long second = sum_list(count, copy);
    va_end(copy);
    va_end(list);
    return first * 1000 + second;
}

__attribute__((noinline)) static double mixed(const char *kinds, ...) {
    va_list list;
    double sum = 0;
    va_start(list, kinds);
    for (; *kinds != 0; kinds++) {
        switch (*kinds) {
        case 'i':
            sum += va_arg(list, int);
            break;
        case 'l':
            sum += va_arg(list, long);
            break;
        case 'd':
            sum += va_arg(list, double);
            break;
        case 's':
            sum += strlen(va_arg(list, const char *));
            break;
        case 'p': {
            struct point point = va_arg(list, struct point);
            sum += point.x * point.y;
            break;
        }
        case 'L': {
            struct large large = va_arg(list, struct large);
            sum += large.values[0] + large.values[4];
            break;
        }
        case 'x':
            sum += (double)va_arg(list, long double);
            break;
        }
    }
    va_end(list);
    return sum;
}

__attribute__((noinline, format(printf, 3, 4))) static int format(char *out, size_t size,
                                                                 const char *text, ...) {
    va_list list;
    va_start(list, text);
    int length = vsnprintf(out, size, text, list);
    va_end(list);
    return length;
}

static double (*volatile indirect)(const char *, ...) = mixed;

static void *work(void *argument) {
    int id = *(int *)argument;
    long got = sum(3 + id, 1 + id, 2, 3, 4, 5);
    struct point point = {1.5 + id, 4};
    struct large large = {{1, 2, 3, 4, 5 + id}};
    got += (long)indirect("ildspLxiiii", 1, 2L, 3.5, "four", point, large, 6.25L, 7, 8, 9, 10);
    pthread_mutex_lock(&lock);
    sums[id] = got;
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
    char text[64];
    int length = format(text, sizeof text, "%s-%d-%.2f-%c", "abc", 42, 2.75, 'z');
    if (length != (int)strlen(text) || text[4] != '4') {
        return 1;
    }
    printf("%ld %ld %s\n", sums[0], sums[1], text);
    return 0;
}
