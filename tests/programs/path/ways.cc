// All the ways in which control goes on, in two threads, and several ways to end: the first argument
// says which.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static volatile unsigned rounds;
static volatile int ticks;

static int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

static int compare(const void *a, const void *b) {
  int left = *static_cast<const int *>(a), right = *static_cast<const int *>(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

struct Guard {
  int &count;
  ~Guard() {
    if (count % 2) count += 3; else count++;
  }
};

__attribute__((noinline)) static int throws(unsigned n) {
  int count = int(n);
  Guard guard{count};
  if (n % 3 == 0) throw int(n);
  if (n % 5 == 0) throw std::string("five");
  return count;
}

__attribute__((noinline)) static int catches(unsigned n) {
  try {
    return throws(n) + throws(n / 2);
  } catch (int number) {
    return number % 7 ? number : -1;
  } catch (const std::string &text) {
    return int(text.size());
  }
}

static int twice(int x) { return x & 1 ? x * 2 : x / 2; }
static int minus(int x) { return x > 100 ? x - 100 : x + 7; }
static int (*const table[])(int) = {twice, minus, abs, minus};

__attribute__((noinline)) static int narrow(unsigned x) {
  switch (x % 11) {
    case 0: return 3;
    case 1: case 4: x += 2; break;
    case 5: x *= 3;  // On to the next.
    case 7: x ^= 5; break;
    case 9: if (x & 16) return 1;
    default: x++;
  }
  return int(x % 1000);
}

#define CASES(n) case n: r += x ^ n; break; case n + 1: r -= x; break; case n + 2: r ^= 77; break; \
    case n + 3: r += 5; case n + 4: r *= 3; break;
__attribute__((noinline)) static int wide(unsigned x) {
  unsigned r = 1;
  switch (x % 90) {
    CASES(0) CASES(5) CASES(10) CASES(15) CASES(20) CASES(25) CASES(30) CASES(35)
    CASES(40) CASES(45) CASES(50) CASES(55) CASES(60) CASES(65) CASES(70) CASES(75)
  }
  return int(r % 1000);
}

// A machine with computed jumps.
__attribute__((noinline)) static int machine(unsigned code) {
  static const void *const steps[] = {&&add, &&halve, &&flip, &&end};
  int value = 5;
  goto *steps[code & 3];
add:
  value += 3;
  if (value > 400) goto end;
  code = code >> 2 | 3u << 30;
  goto *steps[code & 3];
halve:
  value /= 2;
  code = code >> 2 | 3u << 30;
  goto *steps[code & 3];
flip:
  value = -value;
  code = code >> 2 | 3u << 30;
  goto *steps[code & 3];
end:
  return value;
}

__attribute__((noinline)) static int loops(unsigned seed) {
  int sum = 0;
  for (int i = 0; i < int(seed % 40); i++) {
    if (i & 1 && int(seed) & i) sum += 3;
    if ((seed >> (i % 30)) & 1 || sum % 5 == 2) sum ^= i; else if (i > 20) continue;
    if (sum > 3000) break;
    if (sum % 3 == 0) sum += i & 4 ? 2 : 5;
    if (sum % 7 == 1) sum -= i & 8 ? 1 : 3;
    if (sum & 64 && i & 2 && seed & 32) sum += 9;
    while (sum > 500) sum -= sum & 1 ? 300 : 250;
  }
  unsigned steps = 0;
  while (seed > 1 && steps < 60) { seed = seed & 1 ? 3 * seed + 1 : seed / 2; steps++; }
  return sum + int(steps);
}

static thread_local jmp_buf place;
__attribute__((noinline)) static void leaps(int depth) {
  if (depth == 0) longjmp(place, 4);
  leaps(depth - 1);
}

static int leap(unsigned n) {
  int got = setjmp(place);
  if (got == 0) leaps(int(n % 5));
  return n & 8 ? got : -got;
}

static void tick(int) {
  if (ticks % 3) ticks = ticks + 1; else ticks = ticks + 4;
}

static int round(unsigned n) {
  int sum = 0;
  switch (n % 9) {
    case 0: sum = ackermann(2, int(n % 6)); break;
    case 1: sum = catches(n); break;
    case 2: {
      std::vector<int> numbers;
      for (unsigned i = 0; i < 12; i++) numbers.push_back(int((n * 7919 + i * i * 31) % 100));
      qsort(numbers.data(), numbers.size(), sizeof(int), compare);
      sum = numbers[5];
      break;
    }
    case 3: sum = table[n / 9 % 4](int(n)); break;
    case 4: sum = narrow(n * 2654435761u >> 7); break;
    case 5: sum = wide(n * 2654435761u >> 9); break;
    case 6: sum = machine(n * 2654435761u); break;
    case 7: sum = loops(n * 40503u); break;
    case 8: sum = leap(n); break;
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

__attribute__((noinline)) static int fault(int *where, unsigned n) {
  int sum = 0;
  for (unsigned i = 0; i < n; i++) {
    if (i % 3 == 1) sum += 2;
    if (i % 5 == 2 || sum % 4 == 1) where += i == 47;
    if (i == 47 && sum > 3) where = reinterpret_cast<int *>(uintptr_t(sum));
    sum += i % 2 ? *where : -*where;
  }
  return sum;
}

int main(int, char **arguments) {
  const char *end = arguments[1];
  bool killed = !strcmp(end, "kill");
  pthread_t thread;
  pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(killed ? 1u << 30 : 700));
  if (killed) {
    while (rounds < 300) usleep(200);
    for (int i = 0; i < 30000; i++) ticks = ticks + (i & 4 ? 1 : 2);
    kill(getpid(), SIGKILL);
  }
  pthread_join(thread, nullptr);
  long sum = reinterpret_cast<long>(work(reinterpret_cast<void *>(400)));
  if (!strcmp(end, "signals")) {
    signal(SIGPROF, tick);
    itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_PROF, &timer, nullptr);
    for (unsigned n = 0; ticks < 12; n++) sum += loops(n);
    timer = {};
    setitimer(ITIMER_PROF, &timer, nullptr);
  }
  int numbers[2] = {1, 2};
  if (!strcmp(end, "segv")) sum += fault(numbers, 60);
  if (!strcmp(end, "abort") && sum != 1) abort();
  std::printf("%ld\n", sum);
  return 0;
}
