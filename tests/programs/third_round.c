/* A producer hands the address of a block's variable to a worker in three rounds, and waits for the first two alone. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define COMPLETE 0x600dL

struct task {
    long state;
    int number;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct task *tasks;
static int closed;
static sem_t first;

static void *work(void *a) {
  (void)a;
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (!tasks && !closed) pthread_cond_wait(&changed, &mutex);
    struct task *task = tasks;
    if (!task) { pthread_mutex_unlock(&mutex); return NULL; }
    tasks = NULL;
    pthread_mutex_unlock(&mutex);
    usleep(50);
    assert(task->state == COMPLETE);
    sem_post(&first);
  }
}

static void *produce(void *a) {
  char text[64];
  for (int i = 0; i < 3; i++) {
    {
      struct task task = {COMPLETE, i};
      pthread_mutex_lock(&mutex); tasks = &task; pthread_cond_signal(&changed); pthread_mutex_unlock(&mutex);
      if (i < 2) while (sem_wait(&first)) {}
    }
    {
      struct task other = {i, i};
      snprintf(text, sizeof text, "%p %d of %f", (void *)&other, i, 0.5);
      usleep(200);
    }
  }
  return text[0] == 's' ? a : NULL;
}

int main(void) {
  pthread_t worker, producer;
  sem_init(&first, 0, 0);
  pthread_create(&worker, NULL, work, NULL);
  pthread_create(&producer, NULL, produce, NULL);
  pthread_join(producer, NULL);
  pthread_mutex_lock(&mutex); closed = 1; pthread_cond_signal(&changed); pthread_mutex_unlock(&mutex);
  pthread_join(worker, NULL);
  return 0;
}
