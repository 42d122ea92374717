#include <pthread.h>
#include <stdio.h>

int mark(int number);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *work(void *argument) {
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&lock);
    total++;
    pthread_mutex_unlock(&lock);
    mark(i % 5 ? 1 : 2);
    if (i % 50 == *(int *)argument) mark(3);
  }
  return argument;
}

int main(void) {
  pthread_t threads[3];
  int arguments[3] = {0, 1, 2};
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, &arguments[i]);
  for (int i = 0; i < 3; i++) {
    void *result;
    pthread_join(threads[i], &result);
    if (result == &arguments[i]) mark(4);
  }
  printf("%d\n", total);
  return 0;
}
