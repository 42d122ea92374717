/* Inline assembly: what is understood, what the log tells, and what does nothing. */
#include <cpuid.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct pair {
    int before, value, after;
};
static volatile int lock;
static int counter, plain, atomic, swaps, references = 1;
static long total;
static short flags;
static struct pair pair;

static void acquire(volatile int *l)
{
    int taken;
    do {
        taken = 1;
        __asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(*l) : : "memory");
        if (taken)
            __asm__ volatile("rep; nop" ::: "memory");
    } while (taken);
}
static void release(volatile int *l) { __asm__ volatile("movl $0, %0" : "=m"(*l) : : "memory"); }
static int add(int *p, int n)
{
    __asm__ volatile("lock; xaddl %0, %1" : "+r"(n), "+m"(*p) : : "memory", "cc");
    return n;
}
static int swap(int *p, int expected, int new)
{
    int old;
    __asm__ volatile("lock\n\tcmpxchgl %2, %1"
                     : "=a"(old), "+m"(*p)
                     : "r"(new), "0"(expected)
                     : "memory", "cc");
    return old;
}
static int drop(int *p)
{
    unsigned char zero;
    __asm__ volatile("lock; decl %0; sete %1" : "+m"(*p), "=qm"(zero) : : "memory", "cc");
    return zero;
}
static void count(long *p, long n)
{
    __asm__ volatile("lock addq %1, (%0)" : : "r"(p), "er"(n) : "memory", "cc");
}
static void set(short *p, int bits)
{
    __asm__ volatile("lock orw %w1, %0" : "+m"(*p) : "r"(bits) : "cc");
}
static uint32_t swapped(uint32_t x)
{
    __asm__("bswapl %0" : "+r"(x));
    return x;
}
static uint64_t hidden(uint64_t x)
{
    __asm__ volatile("" : "+r"(x) : : "memory");
    return x;
}
static uint64_t product(uint64_t a, uint64_t b, uint64_t *high)
{
    uint64_t low;
    __asm__("mulq %3" : "=a"(low), "=d"(*high) : "a"(a), "rm"(b) : "cc");
    return low;
}
static int load(const int *p)
{
    int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "m"(*p));
    return value;
}
static void *work(void *name)
{
    for (int i = 0; i < 4; i++) {
        acquire(&lock);
        counter++;
        plain += load(&counter) > 0;
        release(&lock);
        if (add(&atomic, 3) % 3 != 0)
            puts("torn");
        for (int old = swaps, seen; (seen = swap(&swaps, old, old + 2)) != old;)
            old = seen;
        count(&total, i);
        set(&flags, 1 << i);
        __asm__ volatile("lock incl %0" : "+m"(references) : : "cc");
        if (drop(&references))
            puts("gone");
        __asm__ volatile("lock; addl $0,0(%%rsp)" ::: "memory", "cc");
    }
    return name;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, work, "a");
    pthread_create(&b, NULL, work, "b");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    int exact = counter == 8 && plain == 8 && atomic == 24 && swaps == 16 && total == 12;
    if (!exact || flags != 15 || !drop(&references))
        return 1;
    unsigned eax, ebx, ecx, edx, low, high;
    char vendor[13] = {0};
    __cpuid(0, eax, ebx, ecx, edx);
    memcpy(vendor, &ebx, 4);
    memcpy(vendor + 4, &edx, 4);
    memcpy(vendor + 8, &ecx, 4);
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    uint64_t upper, ticks = hidden((uint64_t)high << 32 | low);
    uint64_t lower = product(ticks | 1, 1ull << 63, &upper);
    printf("%s %d %d\n", vendor, ticks > 0, lower == 1ull << 63);
    __asm__ volatile("movl %2, %0\n\tmovl %2, %1"
                     : "=m"(pair.value), "=m"(pair.after)
                     : "r"(7)
                     : "memory");
    __asm__ volatile("mfence" ::: "memory");
    char text[8] = "assembly", copy[8];
    char *to = copy;
    const char *from = text;
    size_t left = sizeof text;
    __asm__ volatile("cld\n\trep movsb"
                     : "+D"(to), "+S"(from), "+c"(left), "=m"(copy)
                     : "m"(text)
                     : "cc");
    if (left != 0 || memcmp(copy, text, 8) != 0 || swapped(0x11223344) != 0x44332211)
        return 2;
    return pair.value == 7 && pair.after == 7 && pair.before == 0 ? 0 : 3;
}
