/*
 * __builtin_thread_pointer: the address of what the C library keeps of a thread, which allocators take for its number.
 * It comes of no memory and no call, and what hangs on it has to be known all the same.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static uintptr_t owner;
static int own;
static int foreign;

static uintptr_t self(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static void look(void)
{
    if (owner == self())
        own++;
    else
        foreign++;
}

static void *run(void *unused)
{
    look();
    owner = self();
    look();
    return unused;
}

int main(void)
{
    pthread_t thread;

    owner = self();
    look();
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    look();
    printf("%d of its own, %d of others\n", own, foreign);
    return own == 2 && foreign == 2 ? 0 : 1;
}
