/* Calls of functions of another file (callee.c), and of none: through pointers, by library functions,
   with other types than the callee has. */
#include <stdio.h>
#include <stdlib.h>

int mark(int number);
int apply(int (*function)(int), int number);

struct pair { long a, b; };
struct large { long words[6]; };
struct mixed { double d; long l; };

int other(int a, unsigned char b, long c, char *d);
double floats(double a, int b, float c);
struct pair both(struct pair p);
struct large grow(struct large l, int by);
struct mixed mix(double d, long l);
int odd(unsigned n);
int count(int n, ...);
int typed(long a); /* an int, in truth */
int loose();       /* (int, int) */
int descend(int (*function)(int), int n);
int sorts(int *numbers, int n);
int stubborn(int n);
extern int (*table[3])(int);

int here(int n) { return mark(1), n + 1; }

int even(unsigned n) {
  mark(2);
  return n == 0 ? 1 : odd(n - 1);
}

int compare(const void *a, const void *b) {
  mark(3);
  return here(*(const int *)a) - here(*(const int *)b);
}

int main(void) {
  long sum = 0;
  char text[4] = "abc";
  int numbers[5] = {4, 2, 5, 1, 3};
  for (int i = 0; i < 3; i++) {
    sum += here(i);
    sum += other(i, 200 + i, -1, text);
    sum += (int)floats(1.5, i, 2.5f);
    struct pair p = both((struct pair){i, 2});
    sum += p.a + p.b;
    struct large l = grow((struct large){{1, 2, 3, 4, 5, 6}}, i);
    sum += l.words[5];
    struct mixed m = mix(0.5, i);
    sum += (long)m.d + m.l;
    sum += count(3, 1, 2, 3);
    sum += typed(i);
    sum += loose(i, 2);
    sum += table[i](i);
    sum += apply(here, i);
    sum += apply(table[i], i);
    sum += stubborn(i);
  }
  sum += even(9);
  sum += descend(here, 4);
  sum += sorts(numbers, 5);
  qsort(numbers, 5, sizeof *numbers, compare);
  printf("%ld %d\n", sum, numbers[0]);
  return 0;
}
