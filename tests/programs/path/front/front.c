// Stands before the library's `twice`, is not instrumented, and calls that with something else.
#define _GNU_SOURCE
#include <dlfcn.h>

int twice(int n) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "twice");
  return real(n + 20);
}
