/* A program with a function of its own for the system call, as most have that wait for futexes: which
   operation it is comes as an argument. None of those that are used here writes to the object around the word. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct worker {
    _Atomic int32_t word;
    long jobs;
    int limit;
};

static inline long futex(_Atomic int32_t *word, int operation, int32_t value)
{
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    while (atomic_load(&worker->word) == 0)
        futex(&worker->word, FUTEX_WAIT, 0);
    if (worker->limit > 0)
        worker->jobs++;
    return NULL;
}

int main(void)
{
    struct worker *worker = calloc(1, sizeof *worker);
    pthread_t thread;
    worker->limit = 7;
    pthread_create(&thread, NULL, work, worker);
    usleep(1000);
    atomic_store(&worker->word, 1);
    futex(&worker->word, FUTEX_WAKE, 1);
    pthread_join(thread, NULL);
    return worker->jobs != 1;
}
