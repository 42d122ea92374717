/* See caller.c. */
#include <stdarg.h>
#include <stdlib.h>

int mark(int number);
int apply(int (*function)(int), int number);

struct pair { long a, b; };
struct large { long words[6]; };
struct mixed { double d; long l; };

int even(unsigned n);
int here(int n);

int other(int a, unsigned char b, long c, char *d) {
  mark(100);
  return d[a] + b + (int)c;
}

double floats(double a, int b, float c) { return mark(101), a + b + c; }
struct pair both(struct pair p) { return mark(102), (struct pair){p.b, p.a + 1}; }

struct large grow(struct large l, int by) {
  mark(103);
  l.words[5] += by;
  return l;
}

struct mixed mix(double d, long l) { return mark(104), (struct mixed){d + 1, l}; }

int odd(unsigned n) {
  mark(105);
  return n == 0 ? 0 : even(n - 1);
}

int count(int n, ...) {
  va_list list;
  int sum = 0;
  va_start(list, n);
  for (int i = 0; i < n; i++) sum += va_arg(list, int);
  va_end(list);
  return mark(106), sum;
}

int typed(int a) { return mark(107), a; }
int loose(int a, int b) { return mark(108), a * b; }

/* A call by a library function in the middle of one by the other file. */
int descend(int (*function)(int), int n) {
  mark(111);
  return n == 0 ? function(n) : apply(function, n) + descend(function, n - 1);
}

static int compare(const void *a, const void *b) {
  mark(112);
  return here(*(const int *)b) - here(*(const int *)a);
}

int sorts(int *numbers, int n) {
  qsort(numbers, n, sizeof *numbers, compare);
  return mark(113), numbers[0];
}

/* Calls itself by way of a function that is not instrumented. */
int stubborn(int n) { return mark(114), n <= 0 ? 0 : apply(stubborn, n - 1); }

static int first(int n) { return mark(115), n; }
static int second(int n) { return mark(116), first(n) + n; }
int third(int n) { return mark(117), second(n) + n; }
int (*table[3])(int) = {first, second, third};
