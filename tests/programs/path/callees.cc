// What calls.cc calls.
#include "calls.h"

#include <cstdarg>
#include <cstdlib>
#include <string>

volatile int ticks;

Shape::Shape(int n) : size(n & 1 ? n : n + 3) {}
Shape::~Shape() { if (size > 100) ticks = ticks + 0; }
int Shape::area(int by) const { return by & 2 ? size * by : size + by; }

Guard::Guard(int &n) : count(n) {}
Guard::~Guard() {
  if (count % 2) count += 3; else count++;
}

int odd(unsigned n) {
  if (n == 0) return 0;
  return even(n - 1);
}

int throws(unsigned n) {
  int count = clamp(int(n));
  Guard guard(count);
  if (n % 3 == 0) throw int(n);
  if (n % 5 == 0) throw std::string("five");
  return n % 7 == 0 ? plain_throws(n) : count;
}

int plain_throws(unsigned n) {
  int count = int(n);
  Guard guard(count);
  return pass_unsigned(throws, n / 2) + count;
}

void leaps(jmp_buf to, int depth) {
  if (depth == 0) longjmp(to, 4);
  if (depth & 1) pass_jump(to, depth - 1); else leaps(to, depth - 1);
}

int add(int n, ...) {
  va_list list;
  va_start(list, n);
  int sum = 0;
  for (int i = 0; i < n; i++) sum += va_arg(list, int) & 1 ? 3 : 1;
  va_end(list);
  return sum;
}

Pair both(Pair pair) {
  if (pair.a > pair.b) return {pair.b, pair.a};
  return pair;
}

Large grow(Large large, int by) {
  for (long &word : large.words) if (word & 1) word += by;
  return large;
}

Mixed mix(double d, long l, float f) {
  if (l & 1) return {d * 2, l + long(f)};
  return {d + 1, l};
}

// An int for its callers, who pass something else.
extern "C" int typed(int n) { return n & 4 ? n / 2 : n + 1; }
extern "C" int more(int a, int b) { return a > b ? a : b; }

static int compare(const void *a, const void *b) {
  int left = back(*static_cast<const int *>(a)), right = back(*static_cast<const int *>(b));
  return left < right ? -1 : left > right ? 1 : 0;
}

int sorts(unsigned n) {
  int numbers[9];
  for (unsigned i = 0; i < 9; i++) numbers[i] = int((n * 7919 + i * i * 31) % 100);
  qsort(numbers, 9, sizeof *numbers, compare);
  return numbers[3];
}

// Is called, and is called back in the middle of that.
int stubborn(int n) {
  if (n <= 0) return 1;
  return n & 1 ? pass_on(stubborn, n - 1) : pass_on(back, n) + pass_on(stubborn, n - 2);
}

int tail(int n) {
  if (n & 1) return back(n);
  return stubborn(n % 4);
}

static int twice(int x) { return x & 1 ? x * 2 : x / 2; }
static int minus(int x) { return x > 100 ? x - 100 : x + 7; }
int (*const table[4])(int) = {twice, minus, abs, back};

__attribute__((noinline)) int faults(int *where, unsigned n) {
  if (n == 0) return *where;
  return n % 3 == 1 ? faults(where, n - 1) + 1 : table[n % 2](int(n)) + faults(where, n - 1);
}

void gives_up(int n) {
  if (n <= 0) abort();
  if (back(n) != 5000) gives_up(n - 2);
}

void tick(int) {
  if (ticks % 3) ticks = ticks + back(0); else ticks = ticks + 4;
}
