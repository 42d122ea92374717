#include <stdexcept>
#include <string>

extern "C" int mark(int number);

inline int common(int n) { mark(400); return n > 3 ? n : -n; }
int use_common(int n) { return common(n + 1); }

int other(int n) {
  mark(401);
  if (n == 8) throw n;
  return n;
}

template <class T> T check(T value) {
  if (value % 3 == 0) {
    mark(700);
    throw std::logic_error("three divides " + std::to_string(value));
  }
  return value;
}

void may_throw(int n) {
  mark(800);
  check(n);
  mark(801);
}
