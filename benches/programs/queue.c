// A bounded queue between producers and workers, with some work for every item.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { ROOM = 64, PRODUCERS = 2, WORKERS = 2, ITEMS = 60000, WORK = 3500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static uint64_t items[ROOM];
static int first, count, producing = PRODUCERS;
static uint64_t sums[WORKERS];

static void *produce(void *argument) {
  uint64_t seed = (uint64_t)(long)argument * 977 + 1;
  for (int i = 0; i < ITEMS; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    pthread_mutex_lock(&lock);
    while (count == ROOM) pthread_cond_wait(&emptied, &lock);
    items[(first + count++) % ROOM] = seed;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  producing--;
  pthread_cond_broadcast(&filled);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static uint64_t work(uint64_t item) {
  uint64_t result = 0;
  for (int i = 0; i < WORK; i++) {
    item ^= item << 13;
    item ^= item >> 7;
    item ^= item << 17;
    if (item & 1) result += item;
  }
  return result;
}

static void *consume(void *argument) {
  long self = (long)argument;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (count == 0 && producing) pthread_cond_wait(&filled, &lock);
    if (count == 0) break;
    uint64_t item = items[first];
    first = (first + 1) % ROOM;
    count--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&lock);
    sums[self] += work(item);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t producers[PRODUCERS], workers[WORKERS];
  for (long i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, consume, (void *)i);
  for (long i = 0; i < PRODUCERS; i++) pthread_create(&producers[i], NULL, produce, (void *)i);
  for (int i = 0; i < PRODUCERS; i++) pthread_join(producers[i], NULL);
  for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
  uint64_t sum = 0;
  for (int i = 0; i < WORKERS; i++) sum += sums[i];
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
