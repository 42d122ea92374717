// A handler runs in a call, behind a block that leaves nothing in the log, and what that wrote decides
// its way.
#include <signal.h>

static volatile int round, seen;

static void raised(int number) {
  (void)number;
  if (round % 3 == 0) seen++;
}

static int clamp(int n) { return n > 40 ? 40 : n; }

int main(void) {
  int sum = 0;
  signal(SIGUSR1, raised);
  for (int i = 0; i < 100; i++) {
    sum += clamp(i);
  behind:
    round = i;
    raise(SIGUSR1);
    if (sum < 0) goto behind;
  }
  return seen != 34;
}
