// Threads read and write eight cells that all of them want, one access in twenty under a lock, and
// branch on what they read. Each also counts its steps in a counter without a lock, so that an update
// is lost sooner or later. They begin at one time of the clock, so that they really run side by side.
// usage: contended ACCESSES [THREADS]: about so many accesses in all (default: 1000) by so many
// threads (default: 4)
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 8, MOST_THREADS = 64, COUNTED = 32 };

static struct {
  int value;
  pthread_mutex_t lock;
} cells[CELLS];
static int rounds, threads = 4;
static int steps;
static long begin;

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void *work(void *argument) {
  unsigned random = (unsigned)(long)argument * 2654435761u + 12345;
  int odd = 0;
  long when = begin;
  while (now() < when) {
  }
  for (int i = 0; i < rounds; i++) {
    random = random * 1664525u + 1013904223u;
    int cell = (random >> 8) % CELLS;
    unsigned kind = (random >> 16) % 40;
    if (kind == 0) {
      pthread_mutex_lock(&cells[cell].lock);
      cells[cell].value += 2;
      pthread_mutex_unlock(&cells[cell].lock);
    } else if (kind < 20) {
      if (cells[cell].value & 1) odd++;
    } else {
      cells[cell].value = i;
    }
    if (i % COUNTED == 0) steps++;
  }
  return (void *)(long)odd;
}

int main(int count, char **arguments) {
  int accesses = count > 1 ? atoi(arguments[1]) : 1000;
  if (count > 2) threads = atoi(arguments[2]);
  if (threads < 1 || threads > MOST_THREADS) return 2;
  // A step makes a little more than one access.
  rounds = accesses / threads;
  pthread_t running[MOST_THREADS];
  for (int i = 0; i < CELLS; i++) pthread_mutex_init(&cells[i].lock, NULL);
  begin = now() + 2000;
  for (long i = 0; i < threads; i++) pthread_create(&running[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
  assert(steps == threads * ((rounds + COUNTED - 1) / COUNTED));
  return 0;
}
