#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mark(int number);

static int ascending(const void *a, const void *b) {
  mark(1);
  return *(const int *)a - *(const int *)b;
}

static int sum(int count, ...) {
  va_list list;
  va_start(list, count);
  int total = 0;
  for (int i = 0; i < count; i++) {
    mark(2);
    total += va_arg(list, int);
  }
  va_end(list);
  return total;
}

static void store(long *place, long value) {
  __asm__ volatile("movq %1, (%0)" : : "r"(place), "r"(value) : "memory");
}

int main(int argc, char **argv) {
  if (argc != 1 || !argv[0][0]) return 6;
  char text[32], cut[6];
  snprintf(text, sizeof text, "value %d", 42);
  snprintf(cut, sizeof cut, "%s", text);
  int ends[2];
  if (pipe(ends) || write(ends[1], "pipe", 4) != 4) return 1;
  char buffer[16];
  if (read(ends[0], buffer, sizeof buffer) != 4) return 2;
  int number = 0;
  if (sscanf("17", "%d", &number) != 1 || number != 17) return 3;
  setenv("SOMETHING", "set", 1);
  char *set = getenv("SOMETHING");
  if (!set || getenv("SURELY_NOT_THERE")) return 4;
  int array[3] = {3, 1, 2};
  qsort(array, 3, sizeof *array, ascending);
  if (sum(9, 1, 2, 3, 4, 5, 6, 7, 8, 9) != 45) return 5;
  long there = 0;
  store(&there, 99);
  for (int i = 0; text[i]; i++)
    if (isspace((unsigned char)text[i])) mark(4);
  mark(3);
  return there != 99;
}
