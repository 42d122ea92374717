// Two threads sort N numbers: ranges wait on a stack under a mutex, and every comparison is of what some
// other thread may have written. The counter of sorted ranges has no lock, so that an update is lost
// sooner or later.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#ifndef N
#define N 3000
#endif

enum { INSERTED = 16, SHARED = 64 };

static int numbers[N];
static struct {
  int low, high;
} jobs[N];
static int waiting, unfinished;
static long pushed, sorted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void push(int low, int high) {
  pthread_mutex_lock(&lock);
  jobs[waiting].low = low;
  jobs[waiting].high = high;
  waiting++;
  unfinished++;
  pushed++;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

static void sort(int low, int high) {
  while (high - low > INSERTED) {
    int pivot = numbers[(low + high) / 2], i = low, j = high;
    while (i <= j) {
      while (numbers[i] < pivot) i++;
      while (numbers[j] > pivot) j--;
      if (i <= j) {
        int other = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = other;
        i++;
        j--;
      }
    }
    if (j - low > SHARED)
      push(low, j);
    else
      sort(low, j);
    low = i;
  }
  for (int i = low + 1; i <= high; i++) {
    int number = numbers[i], j = i;
    for (; j > low && numbers[j - 1] > number; j--) numbers[j] = numbers[j - 1];
    numbers[j] = number;
  }
}

static void *work(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (waiting == 0 && unfinished > 0) pthread_cond_wait(&changed, &lock);
    if (waiting == 0) {
      pthread_mutex_unlock(&lock);
      return NULL;
    }
    waiting--;
    int low = jobs[waiting].low, high = jobs[waiting].high;
    pthread_mutex_unlock(&lock);
    sort(low, high);
    sorted++;
    pthread_mutex_lock(&lock);
    if (--unfinished == 0) pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
}

int main(void) {
  unsigned random = 7;
  for (int i = 0; i < N; i++) {
    random = random * 1103515245u + 12345;
    numbers[i] = (int)(random >> 8) % 100000;
  }
  pthread_t threads[2];
  push(0, N - 1);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < N; i++)
    if (numbers[i - 1] > numbers[i]) abort();
  assert(sorted == pushed);
  return 0;
}
