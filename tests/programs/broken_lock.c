/*
 * Two threads count under a spin lock in inline assembly that looks and takes in two steps: both
 * can find it free. The visits are counted in one step and are always right.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int lock;
static int count, visits;

static void acquire(volatile int *l)
{
    int taken;
    do
        __asm__ volatile("movl %1, %0" : "=r"(taken) : "m"(*l) : "memory");
    while (taken);
    usleep(500);
    __asm__ volatile("movl $1, %0" : "=m"(*l) : : "memory");
}
static void release(volatile int *l)
{
    int none = 0;
    __asm__ volatile("xchgl %0, %1" : "+r"(none), "+m"(*l) : : "memory");
}
static void *work(void *delay)
{
    __asm__ volatile("lock; incl %0" : "+m"(visits) : : "memory", "cc");
    usleep(*(int *)delay);
    acquire(&lock);
    int seen = count;
    usleep(300);
    count = seen + 1;
    release(&lock);
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    int delays[2] = {0, 300};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &delays[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(visits == 2);
    assert(count == 2);
    printf("%d visits\n", visits);
    return 0;
}
