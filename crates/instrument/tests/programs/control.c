#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

int mark(int number);

static int table[12] = {4, 7, 1, 9, 3, 12, 8, 2, 11, 5, 10, 6};
static _Thread_local int depth;
int (*chosen)(int);

int descending(const void *a, const void *b) {
  mark(1);
  if (*(const int *)a > *(const int *)b) return mark(2), -1;
  return *(const int *)a < *(const int *)b;
}

static int twice(int n) { return mark(10), 2 * n; }
static int thrice(int n) { return mark(11), 3 * n; }

static int recurse(int n) {
  mark(20);
  depth++;
  if (n <= 1) return mark(21), 1;
  return recurse(n - 1) + recurse(n - 2);
}

static int choose(int n) {
  switch (n) {
  case 0: mark(30); return 1;
  case 1: mark(31); /* falls through */
  case 2: mark(32); return 2;
  case 7: mark(33); break;
  case 100: mark(34); return 4;
  default: mark(35);
  }
  return 3;
}

static int indirect(int n) {
  static void *labels[] = {&&zero, &&one, &&two};
  goto *labels[n % 3];
zero:
  mark(40);
  return 0;
one:
  mark(41);
  return 1;
two:
  mark(42);
  return indirect(n - 1);
}

int main(void) {
  qsort(table, 12, sizeof table[0], descending);
  int sum = 0;
  for (int i = 0; i < 12; i++) {
    chosen = i % 3 ? twice : thrice;
    sum += chosen(i) - choose(table[i]) * indirect(i);
    if (sum > 100) mark(50);
  }
  do mark(60), sum--; while (sum % 7);
  recurse(5);
  printf("%d %d %d %d\n", table[0], depth % 11, sum, choose(7));
  return 0;
}
