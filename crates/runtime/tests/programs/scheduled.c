/* Programs to be run under a scheduler. What they print tells the order in which things happened. */
#include "gates.h"
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/select.h>

GATED_MODULE

/* WORK and SPIN come from the command line: the hashes of the sites' names. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int x, flag, ready;
static char order[1 << 20];
static int used;
/* Only the holder of the turn writes here. */
static void say(const char *format, ...) {
  va_list list;
  va_start(list, format);
  used += vsnprintf(order + used, sizeof order - used, format, list);
  va_end(list);
}
static void finish(void) { fputs(order, stdout); putchar('\n'); }
static void start(pthread_t *thread, void *(*routine)(void *), long n) {
  if (pthread_create(thread, 0, routine, (void *)n)) abort();
}
static void run(void *(*routine)(void *), int count) {
  pthread_t thread[64];
  for (int i = 0; i < count; i++) start(&thread[i], routine, i + 1);
  for (int i = 0; i < count; i++) pthread_join(thread[i], 0);
  finish();
}

static void *steps(void *n) {
  for (int i = 0; i < 5; i++) { GATE(WORK); say("%ld", (long)n); }
  return 0;
}
static void *racer(void *n) {
  for (int i = 0; i < 100; i++) {
    GATE(WORK);
    int seen = x;
    GATE(WORK);
    x = seen + 1;
  }
  return n;
}
static void race(void) {
  run(racer, 4);
  printf("%d\n", x);
}

static void *locker(void *n) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&mutex);
    GATE(WORK);
    say("%ld", (long)n);
    GATE(WORK);
    say("%ld", (long)n);
    pthread_mutex_unlock(&mutex);
  }
  return 0;
}

static void *consumer(void *n) {
  pthread_mutex_lock(&mutex);
  while (!ready) { say("w"); pthread_cond_wait(&condition, &mutex); }
  ready--;
  say("c%ld", (long)n);
  pthread_mutex_unlock(&mutex);
  return 0;
}
static void condvar(int all) {
  pthread_t thread[3];
  for (int i = 0; i < 3; i++) start(&thread[i], consumer, i + 1);
  usleep(1000);
  pthread_mutex_lock(&mutex);
  ready = 3;
  if (all) pthread_cond_broadcast(&condition);
  else for (int i = 0; i < 3; i++) pthread_cond_signal(&condition);
  say("s");
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], 0);
  finish();
}

static void *poster(void *n) {
  GATE(WORK);
  say("p%ld", (long)n);
  sem_post(&semaphore);
  return 0;
}
static void semaphores(void) {
  pthread_t thread[3];
  sem_init(&semaphore, 0, 0);
  for (int i = 0; i < 3; i++) start(&thread[i], poster, i + 1);
  for (int i = 0; i < 3; i++) { sem_wait(&semaphore); say("w"); }
  for (int i = 0; i < 3; i++) pthread_join(thread[i], 0);
  finish();
}

static void *at_barrier(void *n) {
  for (int i = 0; i < 3; i++) {
    GATE(WORK);
    say("%ld", (long)n);
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) say("|");
  }
  return 0;
}

static void *reader(void *n) {
  if ((long)n & 1) pthread_rwlock_rdlock(&rwlock); else pthread_rwlock_wrlock(&rwlock);
  say("(%ld", (long)n);
  GATE(WORK);
  sched_yield();
  say(")");
  pthread_rwlock_unlock(&rwlock);
  return 0;
}

static void *spinner(void *n) {
  for (int i = 0; i < 2; i++) {
    pthread_spin_lock(&spin);
    GATE(WORK);
    sched_yield();
    say("%ld", (long)n);
    pthread_spin_unlock(&spin);
  }
  return 0;
}

static void routine(void) { say("o"); GATE(WORK); sched_yield(); usleep(10); say("O"); }
static void *oncer(void *n) { pthread_once(&once, routine); say("%ld", (long)n); return 0; }

static struct timespec in(long ms) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += ms * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}
static void *timed_waiter(void *n) {
  struct timespec t = in(10000 * (long)n);
  pthread_mutex_lock(&mutex);
  say("%ld:%d ", (long)n, pthread_cond_timedwait(&condition, &mutex, &t));
  pthread_mutex_unlock(&mutex);
  return 0;
}
static void timed(void) {
  pthread_t thread[3];
  sem_init(&semaphore, 0, 0);
  for (int i = 0; i < 3; i++) start(&thread[i], timed_waiter, 3 - i);
  struct timespec t = in(15000);
  int result = sem_timedwait(&semaphore, &t);
  say("sem:%d:%d ", result, errno == ETIMEDOUT);
  pthread_mutex_lock(&second);
  t = in(15000);
  say("lock:%d ", pthread_mutex_timedlock(&second, &t));
  for (int i = 0; i < 3; i++) {
    t = in(60000);
    say("join:%d ", pthread_timedjoin_np(thread[i], 0, &t));
  }
  finish();
}

static void *sleeper(void *n) {
  for (int i = 0; i < 2; i++) { sleep((long)n); say("%ld", (long)n); }
  return 0;
}
static void sleeps(void) {
  pthread_t thread[3];
  for (int i = 0; i < 3; i++) start(&thread[i], sleeper, 3 - i);
  poll(0, 0, 1500);
  say("m");
  struct timeval t = {2, 0};
  select(0, 0, 0, 0, &t);
  say("M");
  struct timespec s = {3600, 0};
  nanosleep(&s, 0);
  for (int i = 0; i < 3; i++) pthread_join(thread[i], 0);
  finish();
}

static void cleanup(void *what) { say("%s", (char *)what); }
static void *cancelled(void *n) {
  pthread_cleanup_push(cleanup, "cleaned ");
  switch ((long)n) {
  case 1:
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &mutex);
    for (;;) pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    break;
  case 2:
    for (;;) sem_wait(&semaphore);
  case 3:
    for (;;) sleep(1000000);
  }
  pthread_cleanup_pop(1);
  return 0;
}
static void cancel(void) {
  pthread_t thread[3];
  sem_init(&semaphore, 0, 0);
  for (int i = 0; i < 3; i++) start(&thread[i], cancelled, i + 1);
  usleep(1000);
  for (int i = 0; i < 3; i++) pthread_cancel(thread[i]);
  for (int i = 0; i < 3; i++) {
    void *result;
    pthread_join(thread[i], &result);
    say("%d ", result == PTHREAD_CANCELED);
  }
  say("%d", pthread_mutex_trylock(&mutex));
  finish();
}

static int ends[2];
static void *pipe_reader(void *n) {
  char byte;
  GATE(WORK);
  if (read(ends[0], &byte, 1) != 1) abort();
  GATE(WORK);
  say("r%c", byte);
  return n;
}
static void *pipe_writer(void *n) {
  GATE(WORK);
  say("w");
  if (write(ends[1], "!", 1) != 1) abort();
  return n;
}
static void pipes(void) {
  if (pipe(ends)) abort();
  pthread_t thread[2];
  start(&thread[0], pipe_reader, 1);
  start(&thread[1], pipe_writer, 2);
  pthread_join(thread[0], 0);
  pthread_join(thread[1], 0);
  finish();
}

static void *one_way(void *n) {
  pthread_mutex_lock(&mutex);
  GATE(WORK);
  pthread_mutex_lock(&second);
  say("1");
  pthread_mutex_unlock(&second);
  pthread_mutex_unlock(&mutex);
  return n;
}
static void *other_way(void *n) {
  pthread_mutex_lock(&second);
  GATE(WORK);
  pthread_mutex_lock(&mutex);
  say("2");
  pthread_mutex_unlock(&mutex);
  pthread_mutex_unlock(&second);
  return n;
}
static void embrace(void) {
  pthread_t thread[2];
  start(&thread[0], one_way, 1);
  start(&thread[1], other_way, 2);
  pthread_join(thread[0], 0);
  pthread_join(thread[1], 0);
  finish();
}

static void *waits_for_flag(void *n) {
  while (!flag) GATE(SPIN);
  say("%ld", (long)n);
  return 0;
}
static void spins(void) {
  pthread_t thread[2];
  start(&thread[0], waits_for_flag, 1);
  start(&thread[1], waits_for_flag, 2);
  sleep(1);
  flag = 1;
  pthread_join(thread[0], 0);
  pthread_join(thread[1], 0);
  finish();
}

static void *child(void *n) { GATE(WORK); say("%ld", (long)n); return 0; }
static void *parent(void *n) {
  pthread_t thread;
  start(&thread, child, 10 * (long)n);
  GATE(WORK);
  say("%ld", (long)n);
  pthread_join(thread, 0);
  return 0;
}

static void *last(void *n) { sched_yield(); say("%ld", (long)n); finish(); return 0; }
static void leaves(void) {
  pthread_t thread;
  start(&thread, last, 1);
  pthread_exit(0);
}

static void *failer(void *n) { GATE(WORK); x = 1; GATE(WORK); assert(x != 2); return n; }
static void *spoiler(void *n) { GATE(WORK); x = 2; GATE(WORK); x = 3; return n; }
static void failure(void) {
  pthread_t thread[2];
  start(&thread[0], failer, 1);
  start(&thread[1], spoiler, 2);
  pthread_join(thread[0], 0);
  pthread_join(thread[1], 0);
  puts("passed");
}

static void forks(void) {
  pthread_t thread;
  start(&thread, steps, 1);
  pid_t pid = fork();
  if (pid == 0) {
    start(&thread, steps, 2);
    pthread_join(thread, 0);
    _exit(used);
  }
  int status;
  waitpid(pid, &status, 0);
  pthread_join(thread, 0);
  say(" %d", WEXITSTATUS(status));
  finish();
}

static void post(int signal) { (void)signal; sem_post(&semaphore); }
static void handler(void) {
  sem_init(&semaphore, 0, 0);
  signal(SIGALRM, post);
  ualarm(50000, 0);
  sem_wait(&semaphore);
  say("posted");
  finish();
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
static void *yielder(void *n) {
  for (int i = 0; i < 50000; i++) sched_yield();
  return n;
}
static void *passer(void *n) {
  for (int i = 0; i < 1000000; i++) pthread_mutex_trylock(&mutex), pthread_mutex_unlock(&mutex);
  return n;
}
static void *gater(void *n) {
  for (int i = 0; i < 100000000; i++) GATE(WORK);
  return n;
}
static void costs(void) {
  double begin = seconds();
  run(yielder, 2);
  printf("switch %.2f us\n", (seconds() - begin) * 1e6 / 100000);
  begin = seconds();
  run(passer, 1);
  printf("sync point %.1f ns\n", (seconds() - begin) * 1e9 / 2000000);
  begin = seconds();
  run(gater, 1);
  printf("gate %.2f ns\n", (seconds() - begin) * 1e9 / 100000000);
}

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "";
#define IF(text) if (!strcmp(name, text))
  IF("steps") run(steps, 3);
  IF("many") run(steps, 64);
  IF("race") race();
  IF("locks") run(locker, 3);
  IF("signals") condvar(0);
  IF("broadcast") condvar(1);
  IF("semaphores") semaphores();
  IF("barrier") { pthread_barrier_init(&barrier, 0, 3); run(at_barrier, 3); }
  IF("rwlock") run(reader, 4);
  IF("spinlock") { pthread_spin_init(&spin, 0); run(spinner, 3); }
  IF("once") run(oncer, 3);
  IF("timed") timed();
  IF("sleeps") sleeps();
  IF("cancel") cancel();
  IF("pipes") pipes();
  IF("embrace") embrace();
  IF("spins") spins();
  IF("family") run(parent, 2);
  IF("leaves") leaves();
  IF("failure") failure();
  IF("forks") forks();
  IF("handler") handler();
  IF("costs") costs();
  return 0;
}
