// Loops that wait with calls in them, of many kinds, in two threads that take turns; the first argument says
// how it ends.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

// In another file.
extern "C" {
bool is_turn(int number);
int look_far(int number, int most);
bool once_more(bool (*look)(int), int number, int depth);
void pass_on(int number);
long asked(void);
}

std::atomic<int> turn{0};
static std::atomic<int> owner{0}, given{0};
static std::atomic_flag lock = ATOMIC_FLAG_INIT;
static volatile int ticks;
static int sum;

void spend(long nanoseconds) {
  timespec time = {0, nanoseconds};
  nanosleep(&time, nullptr);
}

static void tick(int) { ticks = ticks % 3 ? ticks + 1 : ticks + 4; }

struct Look {
  virtual ~Look() = default;
  virtual bool done(int number) { return turn.load(std::memory_order_acquire) == number; }
};

struct Rare : Look {
  bool done(int number) override { return turn == number; }
};

struct Own {
  int number;
  ~Own() { sum += number; }
};

static bool is_mine(int number) { return turn.load() == number; }

// On a busy machine the other thread may not run for a while; what is told to the witness has to end.
static void await(int number) {
  int rounds = 0;
  while (!is_mine(number))
    if (++rounds > 300) {
      rounds = 0;
      spend(500000);
    }
}

// Waits for a time, so that a round has a loop within, in another function.
static int in_steps(int number) {
  int steps = 0;
  while (look_far(number, 40) == 40 && steps < 30) steps++;
  return steps;
}

static bool spins_within(int number) {
  int rounds = 0;
  while (!is_turn(number) && rounds < 50) rounds++;
  return is_mine(number);
}

static void acquire(int how) {
  int rounds = 0;
  if (how == 0) {
    while (lock.test_and_set(std::memory_order_acquire) && ++rounds < 5000) ;
  } else if (how == 1) {
    int expected = 0;
    while (!owner.compare_exchange_weak(expected, 1) && ++rounds < 5000) expected = 0;
  } else if (how == 2) {
    while (owner.exchange(1) && ++rounds < 5000)
      while (owner.load(std::memory_order_relaxed) && ++rounds < 5000) sched_yield();
  } else {
    while ((owner.fetch_or(2) & 2) && ++rounds < 5000) std::this_thread::yield();
  }
}

static void release(int how) {
  if (how == 0) lock.clear();
  else owner = 0;
}

static void step(int self, int n, const char *end) {
  if (n == 20 && self == 1) {
    if (!strcmp(end, "abort")) abort();
    if (!strcmp(end, "segv")) *(volatile int *)16 = 1;
  }
  switch (n % 8) {
    case 0: {
      int rounds = 0;
      while (turn.load(std::memory_order_acquire) != self && rounds < 1000) rounds++;
      sum += rounds % 3 == 0;
      break;
    }
    case 1: {
      long rounds = 0;
      for (;;) {
        if (is_turn(self)) break;
        if (rounds++ == 1000) break;
      }
      sum += rounds % 5 == 1;
      break;
    }
    case 2: sum += in_steps(self) > 3; break;
    case 3: {
      Rare rare;
      Look plain;
      Look *look = n % 3 ? &plain : &rare;
      Own own = {n};
      for (int most = 1000; most && !look->done(self); most--) ;
      break;
    }
    case 4: {
      int most = 12;
      while (!once_more(spins_within, self, 3) && most--) ;
      break;
    }
    case 5: {
      // Not by a constant, and never the same.
      unsigned odd = 1;
      for (int most = 800; most && !is_mine(self); most--) odd = odd * 3 + 1;
      for (int most = 500; most && !is_turn(self); most--) odd += given.fetch_add(1);
      sum += odd & 1;
      break;
    }
    case 6: {
      int most = 800;
      while (!is_turn(self) && asked() && --most) sched_yield();
      break;
    }
    default: {
      bool (*volatile look)(int) = n % 2 ? is_mine : spins_within;
      for (int most = 300; most && !look(self); most--) ;
    }
  }
  await(self);
  if (n % 3 == 0) spend(40000);
  acquire(n % 4);
  if (n % 5 == 0) spend(30000);
  sum++;
  release(n % 4);
  pass_on(1 - self);
  acquire((n + 1) % 4);
  spend(20000);
  release((n + 1) % 4);
  if (n == 21 && self == 0 && !strcmp(end, "kill")) {
    spend(2000000);
    kill(getpid(), SIGKILL);
  }
}

static const char *end;
static void *work(void *argument) {
  int self = *static_cast<int *>(argument);
  for (int n = 0; n < 34; n++) step(self, n, end);
  return nullptr;
}

int main(int arguments, char **argument) {
  static int zero = 0, one = 1;
  end = arguments > 1 ? argument[1] : "pass";
  if (!strcmp(end, "signals")) {
    itimerval every = {{0, 700}, {0, 700}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  pthread_t thread;
  pthread_create(&thread, nullptr, work, &one);
  work(&zero);
  pthread_join(thread, nullptr);
  return sum == 0;
}
