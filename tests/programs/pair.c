// Two members that one thread writes one after the other, and another one copies at once.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

struct range {
    int low, high;
};

static volatile struct range limits = {1, 1};
static struct range seen;

static void *widen(void *argument)
{
    for (int i = 2; i < 12; i++) {
        limits.low = i;
        usleep(30);
        limits.high = i;
    }
    return argument;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, widen, NULL);
    for (int i = 0; i < 5; i++) {
        usleep(40);
        seen = *(struct range *)&limits;
        assert(seen.low == seen.high);
    }
    pthread_join(thread, NULL);
    return 0;
}
