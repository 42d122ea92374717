// Calls between files, in two threads, and several ways to end: the first argument says which.
#include "calls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// In truth they take an int, and two.
extern "C" long typed(long n);
extern "C" int more(...);

static volatile unsigned rounds;

int even(unsigned n) {
  if (n == 0) return 1;
  return odd(n - 1);
}

int back(int n) { return n & 8 ? clamp(n - 8) : n + 1; }

int catches(unsigned n) {
  int count = 1;
  try {
    Guard guard(count);
    return throws(n) + plain_throws(n / 2);
  } catch (int number) {
    return number % 7 ? number : count;
  } catch (const std::string &text) {
    return int(text.size());
  }
}

static int leap(unsigned n) {
  jmp_buf place;
  int got = setjmp(place);
  if (got == 0) leaps(place, int(n % 5));
  return n & 8 ? got : -got;
}

static int structs(unsigned n) {
  Pair pair = both({long(n % 7), long(n % 5)});
  Large large = grow({{1, 2, 3, 4, 5, long(n)}}, int(n % 3));
  Mixed mixed = mix(n * 0.5, long(n), 2.5f);
  if (pair.a == 2) return 7;
  return int(large.words[5] & 3 ? pair.b : mixed.l);
}

static int round(unsigned n) {
  int sum = 0;
  switch (n % 10) {
    case 0: sum = even(n % 23); break;
    case 1: sum = catches(n); break;
    case 2: sum = sorts(n); break;
    case 3: sum = table[n / 10 % 4](int(n)); break;
    case 4: sum = pass_on(table[n / 10 % 4], int(n)); break;
    case 5: sum = structs(n); break;
    case 6: sum = leap(n / 10); break;
    case 7: sum = stubborn(int(n / 10 % 9)) + tail(int(n / 10)); break;
    case 8: {
      Shape shape(int(n % 13));
      const Shape &any = shape;
      sum = any.area(int(n / 10)) + add(3, int(n), 4, int(n / 2));
      break;
    }
    case 9: sum = int(typed(long(n))) + more(int(n % 3), 1) + clamp(int(n)); break;
  }
  return sum;
}

static void *work(void *argument) {
  unsigned limit = unsigned(reinterpret_cast<uintptr_t>(argument));
  long sum = 0;
  for (unsigned n = 0; n < limit; n++) {
    sum += round(n);
    rounds = n;
  }
  return reinterpret_cast<void *>(sum);
}

int main(int, char **arguments) {
  const char *end = arguments[1];
  bool killed = !strcmp(end, "kill");
  pthread_t thread;
  pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(killed ? 1u << 30 : 900));
  if (killed) {
    while (rounds < 700) usleep(200);
    for (int i = 0; i < 60000; i++) ticks = ticks + (i & 4 ? 1 : back(0) + 1);
    kill(getpid(), SIGKILL);
  }
  pthread_join(thread, nullptr);
  long sum = reinterpret_cast<long>(work(reinterpret_cast<void *>(600)));
  if (!strcmp(end, "signals")) {
    signal(SIGPROF, tick);
    itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_PROF, &timer, nullptr);
    for (unsigned n = 0; ticks < 12; n++) sum += even(n % 40) + stubborn(int(n % 11));
    timer = {};
    setitimer(ITIMER_PROF, &timer, nullptr);
  }
  if (!strcmp(end, "segv")) sum += faults(reinterpret_cast<int *>(uintptr_t(16)), 20);
  if (!strcmp(end, "abort") && sum != 1) gives_up(9);
  std::printf("%ld\n", sum);
  return 0;
}
