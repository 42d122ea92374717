/*
 * A thread reads its request, which lies in the frame of a function that has returned; the next call
 * puts another one there. Later in the run it happens again, with a thread that the run which failed
 * had not begun.
 */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

struct request {
    int id;
    int pause;
};

static volatile int seen;

static void *answer(void *argument)
{
    struct request *request = argument;
    int id = request->id;
    usleep(request->pause);
    assert(request->id == id);
    seen = id;
    return NULL;
}

__attribute__((noinline)) static void handle(int id, int pause)
{
    struct request request = {id, pause};
    pthread_t thread;
    pthread_create(&thread, NULL, answer, &request);
    if (pause == 0)
        pthread_join(thread, NULL);
    else
        usleep(pause / 4);
}

int main(void)
{
    for (int round = 0; round < 2; round++) {
        handle(10 * round + 1, 40000);
        handle(10 * round + 2, 0);
        usleep(100000);
    }
    return 0;
}
