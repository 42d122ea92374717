// Who waits for the limit gives up after some rounds. In runs that pass, the limit was there in time. Where there is a file `slow`,
// it comes late.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int is_ready;
static int limit;

static void *start(void *unused) {
    if (access("slow", F_OK) == 0)
        usleep(200000);
    limit = 10;
    atomic_store(&is_ready, 1);
    return unused;
}

static int wait_for_limit(void) {
    for (int round = 0; round < 20 && !atomic_load(&is_ready); round++)
        usleep(1000);
    return limit;
}

int main(void) {
    pthread_t starter;
    pthread_create(&starter, 0, start, 0);
    assert(wait_for_limit() == 10);
    pthread_join(starter, 0);
}
