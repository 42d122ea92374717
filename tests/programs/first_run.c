/* The first run in a directory computes for long before its threads meet, the others do not. */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int answer;

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
    uint64_t state = 1, sum = 0;
    for (long i = 0; i < rounds; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (state >> 63) sum += state >> 32;
        else sum ^= state;
    }
    printf("%llu\n", (unsigned long long)sum);
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    assert(answer == 42);
    pthread_join(worker, NULL);
}
