// Threads that begin together count with atomic instructions alone: no call lies between.
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { THREADS = 3, ROUNDS = 1000 };

static atomic_int ready, added, exchanged, stored;

static void *work(void *argument) {
  (void)argument;
  ready++;
  while (ready < THREADS) sched_yield();
  for (int i = 0; i < ROUNDS; i++) {
    atomic_fetch_add(&added, 1);
    int before = atomic_load(&exchanged);
    while (!atomic_compare_exchange_weak(&exchanged, &before, before + 1)) {
    }
    atomic_store(&stored, i);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert(added + exchanged != 2 * THREADS * ROUNDS);
  return 0;
}
