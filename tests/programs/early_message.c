/* Tells through a pipe that something is ready before it is. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int ends[2], ready;

static void *prepare(void *unused)
{
    write(ends[1], "r", 1);
    usleep(50000);
    ready = 1;
    return unused;
}

int main(void)
{
    pthread_t thread;
    char message;

    if (pipe(ends))
        return 2;
    pthread_create(&thread, 0, prepare, 0);
    if (read(ends[0], &message, 1) != 1)
        return 3;
    assert(ready);
    pthread_join(thread, 0);
    return 0;
}
