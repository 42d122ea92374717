#include <complex.h>
#include <stdio.h>
#include <string.h>

int mark(int number);

typedef int vector __attribute__((vector_size(16)));
struct small { short a; char b; };
struct pair { long a; double b; };
struct large { long words[5]; };

__int128 wide(__int128 a) { mark(1); return a + 1; }
long double extended(long double a) { mark(2); return a * 2; }
float narrow(float a) { mark(3); return a * 2; }
vector lanes(vector a) { mark(4); return a + a; }
struct small small(struct small s) { mark(5); s.a++; return s; }
struct pair pair(struct pair s) { mark(6); s.a++; s.b *= 2; return s; }
struct large large(struct large s) { mark(7); s.words[4]++; return s; }
_Bool flag(_Bool b) { mark(8); return !b; }
double complex both(double complex z) { mark(9); return z * 2; }

/* Through pointers, so that the calls are logged and nothing is inlined. */
__int128 (*volatile wide_p)(__int128) = wide;
long double (*volatile extended_p)(long double) = extended;
float (*volatile narrow_p)(float) = narrow;
vector (*volatile lanes_p)(vector) = lanes;
struct small (*volatile small_p)(struct small) = small;
struct pair (*volatile pair_p)(struct pair) = pair;
struct large (*volatile large_p)(struct large) = large;
_Bool (*volatile flag_p)(_Bool) = flag;
double complex (*volatile both_p)(double complex) = both;

static int variable(int n) {
  int array[n];
  for (int i = 0; i < n; i++) array[i] = i;
  int *middle = &array[n / 2];
  memcpy(&array[0], middle, sizeof *middle);
  mark(10);
  return array[0];
}

int main(void) {
  int good = 1;
  good &= wide_p((__int128)1 << 100) == ((__int128)1 << 100) + 1;
  good &= extended_p(1.25L) == 2.5L;
  good &= narrow_p(1.5f) == 3.0f;
  good &= lanes_p((vector){1, 2, 3, 4})[3] == 8;
  good &= small_p((struct small){1, 2}).a == 2;
  good &= pair_p((struct pair){1, 2.5}).b == 5.0;
  good &= large_p((struct large){{1, 2, 3, 4, 5}}).words[4] == 6;
  good &= !flag_p(1);
  good &= creal(both_p(1.5 + 2 * I)) == 3.0;
  good &= variable(9) == 4;
  puts(good ? "ok" : "wrong");
  return !good;
}
