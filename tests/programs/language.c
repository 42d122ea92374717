/* The C language and library as one thread uses them: heap, structs by value, recursion, function
 * pointers, callbacks from the library, strings, integer widths, floating point, varargs, thread-local
 * variables, setjmp, unions and bit-fields. Every result is checked; a wrong one aborts. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node {
    int key;
    struct node *next;
    char tag[12];
    double w;
};
struct big {
    long a[6];
    short s;
};
static struct node *push(struct node *h, int k, const char *t)
{
    struct node *n = malloc(sizeof *n);
    n->key = k;
    n->next = h;
    strcpy(n->tag, t);
    n->w = k * 0.5;
    return n;
}
static int cmp(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static struct big mk(int i)
{
    struct big b;
    memset(&b, 0, sizeof b);
    for (int j = 0; j < 6; j++)
        b.a[j] = i * j;
    b.s = (short)(i * 7000);
    return b;
}
static long sum(struct big b)
{
    long r = b.s;
    for (int j = 0; j < 6; j++)
        r += b.a[j];
    return r;
}
typedef int (*op)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static int mul(int a, int b) { return a * b; }
static op table[] = {add, sub, mul};
static const char *words[] = {"alpha", "beta", "gamma", "delta"};
static int vsum(int n, ...)
{
    va_list ap;
    va_start(ap, n);
    int s = 0;
    for (int i = 0; i < n; i++)
        s += va_arg(ap, int);
    va_end(ap);
    return s;
}
static double vdsum(int n, ...)
{
    va_list ap;
    va_start(ap, n);
    double s = 0;
    for (int i = 0; i < n; i++)
        s += va_arg(ap, double);
    va_end(ap);
    return s;
}
struct {
    int a, b, c;
} packed[10];
static __thread int tls = 5;
static __thread int tarr[4];
static jmp_buf jb;
static void jumper(int n)
{
    if (n == 0)
        longjmp(jb, 3);
    jumper(n - 1);
}
union u {
    float f;
    uint32_t i;
};
struct bits {
    unsigned a : 3;
    unsigned b : 7;
    int c : 9;
};
int main(int argc, char **argv)
{
    struct node *h = NULL;
    for (int i = 0; i < 9; i++) {
        char b[12];
        snprintf(b, sizeof b, "n%d", i);
        h = push(h, i * 3 % 7, b);
    }
    int tot = 0;
    for (struct node *n = h; n; n = n->next) {
        tot += n->key;
        if (strcmp(n->tag, "n4") == 0)
            tot += 100;
    }
    if (tot < 100)
        abort();
    int arr[20];
    for (int i = 0; i < 20; i++)
        arr[i] = (i * 7919) % 31;
    qsort(arr, 20, sizeof arr[0], cmp);
    for (int i = 1; i < 20; i++)
        if (arr[i - 1] > arr[i])
            abort();
    int key = arr[5];
    int *hit = bsearch(&key, arr, 20, sizeof arr[0], cmp);
    if (!hit)
        abort();
    if (fib(12) != 144)
        abort();
    if (sum(mk(5)) != 35000 - 65536 + 75 + 0 && sum(mk(5)) != (short)35000 + 75)
        abort();
    int r = 0;
    for (int i = 0; i < 3; i++)
        r += table[i](10, i + 1);
    if (r != 11 + 8 + 30)
        abort();
    char buf[64];
    strcpy(buf, words[argc - 1]);
    strcat(buf, "-");
    strncat(buf, words[2], 3);
    if (strlen(buf) != 9)
        abort();
    if (strchr(buf, '-') != buf + 5)
        abort();
    if (memcmp(buf, "alpha", 5))
        abort();
    if (strrchr(buf, 'a') != buf + 7)
        abort();
    memmove(buf + 2, buf, 10);
    if (buf[2] != 'a')
        abort();
    uint8_t u8 = 250;
    u8 += 10;
    if (u8 != 4)
        abort();
    int8_t s8 = 127;
    s8++;
    if (s8 != -128)
        abort();
    uint16_t u16 = 65535;
    u16++;
    if (u16)
        abort();
    uint32_t u32 = 1u << 31;
    u32 <<= 1;
    if (u32)
        abort();
    uint64_t u64 = ~0ull;
    u64 += 2;
    if (u64 != 1)
        abort();
    __int128 w = (__int128)u64 << 100;
    w >>= 99;
    if (w != 2)
        abort();
    int64_t neg = -7;
    if (neg / 2 != -3 || neg % 2 != -1 || (neg >> 1) != -4)
        abort();
    double d = 0;
    for (int i = 1; i < 50; i++)
        d += 1.0 / i;
    if (d < 4.4 || d > 4.5)
        abort();
    float f = 0.1f;
    f *= 3;
    if (f == 0.3)
        abort();
    if ((int)(d * 10) != 44)
        abort();
    if (sqrt(16.0) != 4.0 || floor(-1.5) != -2 || fabs(-3.25) != 3.25)
        abort();
    if (vsum(8, 1, 2, 3, 4, 5, 6, 7, 8) != 36)
        abort();
    if (vdsum(3, 1.5, 2.5, 3.0) != 7.0)
        abort();
    for (int i = 0; i < 10; i++) {
        packed[i].a = i;
        packed[i].b = packed[i].a * 2;
    }
    if (packed[7].b != 14)
        abort();
    tls += 3;
    tarr[argc] = tls;
    if (tarr[1] != 8)
        abort();
    volatile int jumps = 0;
    int v = setjmp(jb);
    if (v == 0) {
        jumps++;
        jumper(3);
    }
    if (v != 3 || jumps != 1)
        abort();
    union u uu;
    uu.f = 1.0f;
    if (uu.i != 0x3f800000)
        abort();
    struct bits bb = {5, 100, -3};
    bb.b += 3;
    if (bb.b != 103 || bb.c != -3 || bb.a != 5)
        abort();
    int *p = calloc(4, sizeof *p);
    p = realloc(p, 100 * sizeof *p);
    for (int i = 0; i < 100; i++)
        p[i] = i;
    p = realloc(p, 10);
    if (p[1] != 1)
        abort();
    free(p);
    switch (argc + 3) {
    case 1:
        abort();
    case 4:
        break;
    case 7:
        abort();
    default:
        abort();
    }
    char *dup = strdup(words[3]);
    if (dup[0] != 'd')
        abort();
    free(dup);
    long n = strtol("123abc", NULL, 10);
    if (n != 123)
        abort();
    if (atoi("77") != 77)
        abort();
    int m = 0;
    int got = sscanf("12 34", "%d %d", &m, &r);
    if (got != 2 || m != 12 || r != 34)
        abort();
    int vla[argc + 4];
    for (int i = 0; i < argc + 4; i++)
        vla[i] = i * i;
    if (vla[4] != 16)
        abort();
    while (h) {
        struct node *nx = h->next;
        free(h);
        h = nx;
    }
    if (argv[0] == NULL)
        abort();
    if (argv[0][0] == 0)
        abort();
    printf("ok %d %f\n", tot, d);
    fprintf(stderr, "%s\n", buf);
    return 0;
}
