// The last thing that a thread does with a pipe is to read until nothing is left: a read that fails with EAGAIN, and
// not since another thread closes the pipe when it has joined this one.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static int ends[2];

static void *worker(void *unused) {
    struct pollfd wakeup = {ends[0], POLLIN, 0};
    char tmp[8];
    poll(&wakeup, 1, -1);
    while (read(ends[0], tmp, sizeof tmp) > 0)
        ;
    return NULL;
}

int main(void) {
    pthread_t thread;
    if (pipe(ends) != 0)
        return 1;
    fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK);
    pthread_create(&thread, NULL, worker, NULL);
    if (write(ends[1], "e", 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
