/* Each thread adds to a total on a stack of its own making, and the total is never what it should be. */
#include <assert.h>
#include <pthread.h>
#include <ucontext.h>

enum { STACK = 64 * 1024 };
static int total;
static __thread ucontext_t home, task;
static __thread char stack[STACK];

static void add(void)
{
    total++;
    swapcontext(&task, &home);
}

static void *work(void *unused)
{
    getcontext(&task);
    task.uc_stack.ss_sp = stack;
    task.uc_stack.ss_size = STACK;
    makecontext(&task, add, 0);
    swapcontext(&home, &task);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    assert(total > 2);
    return 0;
}
