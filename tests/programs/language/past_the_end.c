// A program that writes a little past the end of its last array spoils neither the log nor the walk: what the
// recorder keeps among the program's variables does not lie right behind them.
#include <pthread.h>
#include <stdio.h>

static int input[16];
static int results[4];

static int one_too_many(volatile int parts) { return parts + 1; }

static void *sum(void *unused) {
    int parts = one_too_many(4);
    for (int part = 0; part < parts; part++) {
        int sum = 0;
        for (int i = 0; i < 4; i++)
            sum += input[(part % 4) * 4 + i];
        *(volatile int *)(results + part) = sum;
    }
    return unused;
}

static int total(void) {
    int all = 0;
    for (int part = 0; part < 4; part++)
        all += results[part];
    return all;
}

int main(void) {
    for (int i = 0; i < 16; i++)
        input[i] = i;
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        pthread_create(&thread, 0, sum, 0);
        pthread_join(thread, 0);
    }
    printf("%d\n", total());
    return total() != 120;
}
