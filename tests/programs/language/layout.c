// Bit-fields, unions, type punning, packed and unaligned data, structures by value.
#include <complex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct flags {
    unsigned ready : 1;
    unsigned kind : 5;
    int level : 7;
    unsigned long wide : 40;
    unsigned : 0;
    unsigned char last : 3;
};

union word {
    uint32_t whole;
    uint16_t halves[2];
    uint8_t bytes[4];
    float real;
};

struct __attribute__((packed)) packed {
    char tag;
    uint32_t number;
    uint16_t small;
};

struct small {
    int a, b;
};
struct medium {
    double x;
    long y;
};
struct large {
    long values[6];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct flags flags;
static union word word;
static struct packed packed[3];
static char raw[32];

__attribute__((noinline)) static struct large enlarge(struct large large, int by) {
    for (int i = 0; i < 6; i++) {
        large.values[i] += by * i;
    }
    return large;
}

__attribute__((noinline)) static struct small swap(struct small small) {
    return (struct small){small.b, small.a};
}

__attribute__((noinline)) static struct medium move(struct medium medium) {
    return (struct medium){medium.x * 2, medium.y - 1};
}

static uint64_t pun(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void *one(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        flags.ready ^= 1;
        flags.level -= 5;
        word.halves[1] += 3;
        packed[i].number += 0x01020304u;
        uint32_t number;
        memcpy(&number, raw + 3, sizeof number);
        number += 77;
        memcpy(raw + 3, &number, sizeof number);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *two(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        flags.kind += 9;
        flags.wide = flags.wide * 3 + 1;
        flags.last = (unsigned char)(flags.last + 3);
        word.bytes[0] = (uint8_t)(word.bytes[0] + 200);
        packed[i].small = (uint16_t)(packed[i].number >> 8);
        raw[4] = (char)(raw[4] + 1);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_join(threads[0], NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    pthread_create(&threads[0], NULL, one, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%u %d %u %lu %u\n", flags.ready, flags.level, flags.kind, (unsigned long)flags.wide,
           flags.last);
    printf("%u %u %d\n", word.halves[1], word.bytes[0], raw[7]);
    printf("%d %lx\n", word.real > 0, pun(1.5));
    struct large large = enlarge((struct large){{1, 2, 3, 4, 5, 6}}, 10);
    struct small small = swap((struct small){1, 2});
    struct medium medium = move((struct medium){1.25, 8});
    printf("%ld %d %d %g %ld\n", large.values[5], small.a, small.b, medium.x, medium.y);
    double complex z = (1.0 + 2.0 * I) * (3.0 - 1.0 * I);
    float complex w = (float)creal(z) / (1.0f + 1.0f * I);
    printf("%g %g %g %g\n", creal(z), cimag(z), crealf(w), cimagf(w));
    if (flags.level == 0 || creal(z) != 5.0) {
        return 1;
    }
    return 0;
}
