// 128-bit integers, long double, half precision (as storage), conversions between all of them.
//~ FLAGS: -mf16c
#include <math.h>
#include <pthread.h>
#include <stdio.h>

typedef unsigned __int128 wide;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wide product = 1;
static long double series = 1.0L;
static __int128 signed_wide = -5;
static __fp16 half_shared = 1.0;

static void *work(void *argument) {
    long id = *(long *)argument;
    for (long i = 1; i < 12; i++) {
        pthread_mutex_lock(&lock);
        product *= (wide)(i * 7919 + 1);
        series = series * 0.5L + 1.0L / (long double)(i + 1);
        signed_wide = signed_wide * 3 - 7;
        half_shared = half_shared * (__fp16)1.25 + (__fp16)0.5;
        if (series > 0.25L) {
            series -= 0.125L;
        }
        if (product > ((wide)1 << 100)) {
            product = (product >> 40) | 1;
        }
        if (half_shared > (__fp16)100.0) {
            half_shared /= (__fp16)64.0;
        }
        pthread_mutex_unlock(&lock);
    }
    return argument + id * 0;
}

static int compare(long double a, long double b) {
    int result = 0;
    result |= a < b;
    result |= (a <= b) << 1;
    result |= (a == b) << 2;
    result |= (a != b) << 3;
    result |= (a > b) << 4;
    result |= (a != a) << 5;
    return result;
}

static long double mean(const long double *values, int count) {
    long double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / count;
}

int main(void) {
    pthread_t threads[2];
    long ids[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, work, &ids[i]);
        pthread_join(threads[i], NULL);
    }
    printf("%llx%016llx\n", (unsigned long long)(product >> 64), (unsigned long long)product);
    printf("%lld %.12Lf %a\n", (long long)(signed_wide % 1000003), series, (double)half_shared);
    long double values[] = {1.0L, 2.5L, -3.25L, 1e18L, 0x1p-60L};
    long double average = mean(values, 5);
    printf("%La %d %d %d\n", average, compare(average, series), compare(1.0L, 1.0L),
           compare(NAN, 1.0L));
    int whole = (int)(average / 1e12L);
    long big = (long)(values[3] / 3.0L);
    unsigned long top = (unsigned long)(values[3] * 18.0L);
    float single = (float)average;
    double rounded = (double)(1.0L + 0x1p-60L);
    long double back = (long double)single + (long double)rounded + (long double)big;
    wide from = (wide)(values[3] * 1024.0L);
    long double to = (long double)from;
    printf("%d %ld %lu %a %a %La %d\n", whole, big, top, single, rounded, back, to == values[3] * 1024.0L);
    printf("%La %La %La\n", sqrtl(2.0L), fabsl(-series), -average);
    if (to != values[3] * 1024.0L || rounded != 1.0) {
        return 1;
    }
    __fp16 a = (__fp16)3.14159f;
    float f = (float)a;
    __fp16 b = (__fp16)(a * 2);
    printf("%a %d %d\n", f, (int)b, a < b);
    return 0;
}
