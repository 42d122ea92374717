// Product of two matrices: THREADS threads, each its own rows. Long loops without calls.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 896, THREADS = 2 };

static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static void *rows(void *argument) {
  long first = (long)argument;
  for (long row = first; row < SIZE; row += THREADS)
    for (int column = 0; column < SIZE; column++) {
      double sum = 0;
      for (int i = 0; i < SIZE; i++) sum += left[row][i] * right[i][column];
      product[row][column] = sum;
    }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      left[i][j] = (i * 31 + j * 17) % 101;
      right[i][j] = (i * 13 + j * 7) % 97;
    }
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, rows, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  double trace = 0;
  for (int i = 0; i < SIZE; i++) trace += product[i][i];
  printf("%.0f\n", trace);
  return 0;
}
