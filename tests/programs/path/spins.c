// Loops that wait, of many kinds, in two threads that take turns; the first argument says how it ends.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int turn, given;
static volatile int plain, ticks;
static volatile int wants[2], last;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static atomic_int owner;
static atomic_int busy[4];
static int sum;

// Not static, so that its entry is logged: a handler that runs while it sleeps has its place.
void spend(long nanoseconds) {
  struct timespec time = {0, nanoseconds};
  nanosleep(&time, 0);
}

static void tick(int number) {
  (void)number;
  ticks = ticks % 3 ? ticks + 1 : ticks + 4;
}

// Gives up after so many rounds; says how many there were.
static int look(int number, int most) {
  int j;
  for (j = 0; j < most; j++)
    if (atomic_load_explicit(&turn, memory_order_acquire) == number) break;
  return j;
}

// On a busy machine the other thread may not run for a while; what is told to the witness has to end.
static void await(int number) {
  while (look(number, 5000) == 5000) spend(500000);
}

static long back_off(int number) {
  long all = 0;
  for (int n = 1; atomic_load(&turn) != number; n *= 2) {
    for (int i = 0; i < n; i++) __builtin_ia32_pause();
    all += n;
    if (n > 64) spend(20000);
    if (n > 4096) n = 1;
  }
  return all;
}

// A loop within each round.
static void gather(void) {
  for (;;) {
    int pending = 0;
    for (int j = 0; j < 4; j++) pending += atomic_load_explicit(&busy[j], memory_order_acquire);
    if (pending == 0) break;
  }
}

static void acquire(int how) {
  if (how == 0) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) ;
  } else if (how == 1) {
    int expected = 0;
    while (!atomic_compare_exchange_weak(&owner, &expected, 1)) expected = 0;
  } else if (how == 2) {
    while (atomic_exchange(&owner, 1)) while (atomic_load(&owner)) __builtin_ia32_pause();
  } else {
    while (atomic_fetch_or(&owner, 2) & 2) sched_yield();
  }
}

static void release(int how) {
  if (how == 0) atomic_flag_clear_explicit(&lock, memory_order_release);
  else atomic_store(&owner, 0);
}

static void peterson(int self) {
  wants[self] = 1;
  last = self;
  atomic_thread_fence(memory_order_seq_cst);
  while (wants[1 - self] && last == self) ;
  sum++;
  wants[self] = 0;
}

static void step(int self, int n, const char *end) {
  if (n == 20 && self == 1) {
    if (!strcmp(end, "abort")) abort();
    if (!strcmp(end, "segv")) *(volatile int *)16 = 1;
  }
  switch (n % 6) {
    case 0:
      gather();
      if (n > 8) await(self);
      while (atomic_load(&turn) != self) for (int i = 0; i < 20; i++) __builtin_ia32_pause();
      break;
    case 1: {
      int rounds = look(self, 3000);
      if (rounds == 3000) await(self); else sum += rounds & 7 ? 1 : 2;
      break;
    }
    case 2: sum += back_off(self) % 16 > 8; break;
    case 3: while (plain != n && atomic_load(&turn) != self) sched_yield(); await(self); break;
    case 4: {
      int seen;
      int rounds = 0;
      do { seen = atomic_load(&given); } while (seen < n && atomic_load(&turn) != self && rounds++ < 9000);
      if (seen & 1) sum += 3;
      await(self);
      break;
    }
    default: {
      // Never looks the same.
      unsigned long rounds = 0;
      while (atomic_load(&turn) != self && atomic_fetch_add(&given, 1) < 1 << 30 && rounds < 3000) rounds++;
      await(self);
      sum += rounds % 3 == 0;
    }
  }
  atomic_store(&busy[2 * self], 1);
  if (n % 3 == 0) spend(40000);
  atomic_store(&busy[2 * self], 0);
  plain = n + 1;
  atomic_store(&turn, 1 - self);
  acquire(n % 4);
  if (n % 5 == 0) spend(30000);
  sum++;
  release(n % 4);
  if (n == 21 && self == 0 && !strcmp(end, "kill")) {
    spend(2000000);
    kill(getpid(), SIGKILL);
  }
}

static const char *end;
static void *work(void *argument) {
  int self = *(int *)argument;
  for (int n = 0; n < 26; n++) {
    step(self, n, end);
    peterson(self);
  }
  return 0;
}

int main(int arguments, char **argument) {
  static int zero = 0, one = 1;
  end = arguments > 1 ? argument[1] : "pass";
  if (!strcmp(end, "signals")) {
    struct itimerval every = {{0, 700}, {0, 700}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, 0);
  }
  pthread_t thread;
  pthread_create(&thread, 0, work, &one);
  work(&zero);
  pthread_join(thread, 0);
  return sum == 0;
}
