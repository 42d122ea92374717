#include <cstdio>
#include <stdexcept>
#include <string>

extern "C" int mark(int number);
void may_throw(int n);

static int cleaned;
struct Guard {
  ~Guard() { mark(100); cleaned++; }
};

static int guarded(int n) {
  Guard guard;
  may_throw(n);
  mark(200);
  return n;
}

inline int common(int n) { mark(400); return n > 3 ? n : -n; }
int use_common(int n);
int other(int n);

static int looks, told;
static int look(int n) { return ++looks > n; }
static int (*volatile looking)(int) = look;

// It looks as if it waited. Its last call is reached both past the second one and past what that led to.
static int until(int wanted) {
  struct Keeper {
    ~Keeper() { mark(700); }
  } keeper;
  auto look = looking;
  for (;;) {
    if (look(wanted)) return 1;
    if (look(4)) told++;
    if (look(wanted)) return 2;
  }
}

struct Static {
  Static() { mark(500); }
  ~Static() { mark(501); }
} object;

int main() {
  int caught = 0;
  for (int i = 0; i < 10; i++) {
    try {
      int got = i % 2 ? guarded(i) : guarded(i + 1);
      if (got > 5) mark(201);
      // Two invokes whose normal edges meet in one block, with a phi.
      int met = i % 2 ? use_common(i) : other(i);
      mark(met > 4 ? 202 : 203);
    } catch (const std::logic_error &error) {
      mark(300);
      caught++;
    } catch (int) {
      mark(301);
      caught += 100;
    }
    mark(i % 2 ? 600 : 601);
    common(i);
    use_common(i);
  }
  mark(until(7) == 2 && told == 2 ? 701 : 702);
  std::printf("caught %d, cleaned %d\n", caught, cleaned);
}
