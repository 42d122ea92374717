/* One of each way in which POSIX threads synchronise, and C11 atomics. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct q {
    int buf[4];
    int head, tail, n;
    pthread_mutex_t m;
    pthread_cond_t nf, ne;
};
static struct q Q = {
    .m = PTHREAD_MUTEX_INITIALIZER, .nf = PTHREAD_COND_INITIALIZER, .ne = PTHREAD_COND_INITIALIZER};
static atomic_int total;
static atomic_long flags;
static sem_t sem;
static pthread_barrier_t bar;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t sp;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int inited;
static char name[32];
static double shared_d;
static struct {
    short a;
    char b;
    int c;
} S;
static pthread_key_t tkey;
static void init(void) { inited++; }
static void put(int v)
{
    pthread_mutex_lock(&Q.m);
    while (Q.n == 4)
        pthread_cond_wait(&Q.nf, &Q.m);
    Q.buf[Q.tail] = v;
    Q.tail = (Q.tail + 1) % 4;
    Q.n++;
    pthread_cond_signal(&Q.ne);
    pthread_mutex_unlock(&Q.m);
}
static int get(void)
{
    pthread_mutex_lock(&Q.m);
    while (Q.n == 0)
        pthread_cond_wait(&Q.ne, &Q.m);
    int v = Q.buf[Q.head];
    Q.head = (Q.head + 1) % 4;
    Q.n--;
    pthread_cond_broadcast(&Q.nf);
    pthread_mutex_unlock(&Q.m);
    return v;
}
static void *prod(void *a)
{
    int id = *(int *)a;
    for (int i = 0; i < 10; i++)
        put(id * 100 + i);
    pthread_barrier_wait(&bar);
    sem_post(&sem);
    pthread_rwlock_wrlock(&rw);
    snprintf(name, sizeof name, "prod%d", id);
    S.a += id;
    S.b ^= 1;
    S.c -= S.a;
    pthread_rwlock_unlock(&rw);
    pthread_once(&once, init);
    pthread_setspecific(tkey, a);
    return NULL;
}
static void *cons(void *a)
{
    long s = 0;
    for (int i = 0; i < 10; i++) {
        int v = get();
        s += v;
        atomic_fetch_add(&total, v);
        atomic_fetch_or(&flags, 1 << (v & 15));
    }
    pthread_barrier_wait(&bar);
    sem_wait(&sem);
    pthread_rwlock_rdlock(&rw);
    size_t l = strlen(name);
    char copy[32];
    memcpy(copy, name, sizeof copy);
    S.c += (int)l;
    pthread_rwlock_unlock(&rw);
    pthread_spin_lock(&sp);
    shared_d += s * 0.5;
    if (shared_d > 1e9)
        abort();
    pthread_spin_unlock(&sp);
    int e = 5;
    atomic_int *p = &total;
    atomic_compare_exchange_strong(p, &e, 6);
    if (pthread_mutex_trylock(&Q.m) == 0)
        pthread_mutex_unlock(&Q.m);
    pthread_once(&once, init);
    *(long *)a = s;
    return a;
}
int main(void)
{
    pthread_t t[4];
    int ids[2] = {1, 2};
    long out[2];
    sem_init(&sem, 0, 0);
    pthread_barrier_init(&bar, NULL, 4);
    pthread_spin_init(&sp, 0);
    pthread_key_create(&tkey, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, prod, &ids[i]);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[2 + i], NULL, cons, &out[i]);
    for (int i = 0; i < 4; i++) {
        void *r;
        pthread_join(t[i], &r);
        if (i >= 2 && r != &out[i - 2])
            abort();
    }
    if (out[0] + out[1] != atomic_load(&total))
        abort();
    if (inited != 1)
        abort();
    printf("%d %s %d %g\n", total, name, S.c, shared_d);
    return 0;
}
