// What calls.cc, callees.cc and plain.cc share.
#pragma once
#include <csetjmp>

struct Pair { long a, b; };
struct Large { long words[6]; };
struct Mixed { double d; long l; };

struct Shape {
  explicit Shape(int size);
  virtual ~Shape();
  virtual int area(int by) const;
  int size;
};

struct Guard {
  explicit Guard(int &count);
  ~Guard();
  int &count;
};

// Both files have it, and the linker keeps one.
inline int clamp(int n) {
  if (n > 40) return 40;
  return n < -40 ? -40 : n;
}

// Of calls.cc.
int even(unsigned n);
int catches(unsigned n);
int back(int n);

// Of callees.cc.
int odd(unsigned n);
int throws(unsigned n);
int plain_throws(unsigned n);
void leaps(jmp_buf to, int depth);
int add(int n, ...);
Pair both(Pair pair);
Large grow(Large large, int by);
Mixed mix(double d, long l, float f);
int sorts(unsigned n);
int stubborn(int n);
int tail(int n);
int faults(int *where, unsigned n);
void gives_up(int n);
void tick(int signal);
extern int (*const table[4])(int);
extern volatile int ticks;

// Of plain.cc, which is not instrumented.
int pass_on(int (*function)(int), int n);
int pass_unsigned(int (*function)(unsigned), unsigned n);
void pass_jump(jmp_buf to, int n);
