// Four threads update random accounts, half of the time under the account's lock, and each counts
// itself once in a counter that it reads outside of the lock: a lost update among very many accesses
// that have nothing to do with it.
// usage: ledger ROUNDS [CHECKED]: a thread compares every CHECKED-th account that it updates under
// its lock with what it was before (default: none), so that many accesses decide the path.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 512, THREADS = 4 };

static int accounts[ACCOUNTS];
static pthread_mutex_t locks[ACCOUNTS];
static int rounds, checked;
static int finished;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
  unsigned random = (unsigned)(long)argument * 2654435761u + 12345;
  for (int i = 0; i < rounds; i++) {
    random = random * 1664525u + 1013904223u;
    int account = (random >> 8) % ACCOUNTS;
    if (random & 0x80) {
      pthread_mutex_lock(&locks[account]);
      int before = accounts[account];
      accounts[account] = before + 1;
      if (checked && i % checked == 0 && before < 0) printf("overdrawn: %d\n", account);
      pthread_mutex_unlock(&locks[account]);
    } else {
      accounts[account] += 2;
    }
    if (i == rounds / 2) {
      int before = finished;
      pthread_mutex_lock(&lock);
      finished = before + 1;
      pthread_mutex_unlock(&lock);
    }
  }
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  rounds = count > 1 ? atoi(arguments[1]) : 100;
  checked = count > 2 ? atoi(arguments[2]) : 0;
  for (int i = 0; i < ACCOUNTS; i++) pthread_mutex_init(&locks[i], NULL);
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert(finished == THREADS);
  return 0;
}
