// A simulation in rounds: each thread reads its neighbour's cell, and writes its own behind a barrier. In every seventh
// round that barrier is left out, so that a neighbour's new value may be read.

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define THREADS 4

static pthread_barrier_t step;
static int cell[THREADS], rounds;

static int next(const int *cells, int mine) {
  return cells[mine] + cells[(mine + 1) % THREADS] % 3 + 1;
}

static void *simulate(void *number) {
  int mine = (int)(long)number;
  for (int round = 0; round < rounds; round++) {
    int value = next(cell, mine);
    if (round % 7 != 3)
      pthread_barrier_wait(&step);
    cell[mine] = value;
    pthread_barrier_wait(&step);
  }
  return NULL;
}

static int expected(void) {
  int cells[THREADS] = {0}, values[THREADS], sum = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < THREADS; i++)
      values[i] = next(cells, i);
    for (int i = 0; i < THREADS; i++)
      cells[i] = values[i];
  }
  for (int i = 0; i < THREADS; i++)
    sum += cells[i];
  return sum;
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 300;
  pthread_t threads[THREADS];
  pthread_barrier_init(&step, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, simulate, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  int sum = 0;
  for (int i = 0; i < THREADS; i++)
    sum += cell[i];
  assert(sum == expected());
  return 0;
}
