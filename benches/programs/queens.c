// All ways to place N queens: recursion and short branches, the first column shared out.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 13, THREADS = 2 };

struct board {
  int row[N];
  char taken[N], up[2 * N], down[2 * N];
  long found;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_row;
static long found;

static void place(struct board *board, int column) {
  if (column == N) {
    board->found++;
    return;
  }
  for (int row = 0; row < N; row++) {
    if (board->taken[row] || board->up[row + column] || board->down[row - column + N]) continue;
    board->row[column] = row;
    board->taken[row] = board->up[row + column] = board->down[row - column + N] = 1;
    place(board, column + 1);
    board->taken[row] = board->up[row + column] = board->down[row - column + N] = 0;
  }
}

static void *search(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    int row = next_row++;
    pthread_mutex_unlock(&lock);
    if (row >= N) return NULL;
    struct board *board = calloc(1, sizeof *board);
    board->row[0] = row;
    board->taken[row] = board->up[row] = board->down[row + N] = 1;
    place(board, 1);
    pthread_mutex_lock(&lock);
    found += board->found;
    pthread_mutex_unlock(&lock);
    free(board);
  }
}

int main(void) {
  pthread_t threads[THREADS];
  for (int round = 0; round < 4; round++) {
    next_row = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, search, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
  printf("%ld\n", found);
  return 0;
}
