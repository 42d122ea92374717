// A hash map under striped locks: chains of heap nodes, a lock for every access.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1 << 14, STRIPES = 64, THREADS = 4, STEPS = 3000000, KEYS = 1 << 16 };

struct node {
  uint64_t key, value;
  struct node *next;
};

static struct node *buckets[BUCKETS];
static pthread_mutex_t locks[STRIPES];

static void add(uint64_t key, uint64_t amount) {
  uint64_t hash = key * 0x9e3779b97f4a7c15u >> 40;
  pthread_mutex_t *lock = &locks[hash % STRIPES];
  struct node **bucket = &buckets[hash % BUCKETS];
  pthread_mutex_lock(lock);
  struct node *node = *bucket;
  while (node && node->key != key) node = node->next;
  if (!node) {
    node = malloc(sizeof *node);
    node->key = key;
    node->value = 0;
    node->next = *bucket;
    *bucket = node;
  }
  node->value += amount;
  pthread_mutex_unlock(lock);
}

static void *work(void *argument) {
  uint64_t seed = (uint64_t)(long)argument + 1;
  for (int i = 0; i < STEPS; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    add(seed % KEYS, 1);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&locks[i], NULL);
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  uint64_t sum = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct node *node = buckets[i]; node; node = node->next) sum += node->value;
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
