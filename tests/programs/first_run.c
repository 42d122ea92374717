/* The first run in a directory computes for long before its threads meet, the others do not. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int answer;
static uint64_t sums[256];

__attribute__((noinline)) static uint64_t step(uint64_t state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    sums[state >> 56] += state;
    return state;
}

static void *work(void *nothing) {
    usleep(20000);
    answer = 42;
    return nothing;
}

int main(void) {
    long rounds = 10;
    if (access("seen", F_OK) != 0) {
        close(open("seen", O_CREAT | O_WRONLY, 0600));
        rounds = 40000000;
    }
    uint64_t state = 1;
    for (long i = 0; i < rounds; ++i) state = step(state);
    printf("%llu\n", (unsigned long long)(state + sums[7]));
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    assert(answer == 42);
    pthread_join(worker, NULL);
}
