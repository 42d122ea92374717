/* A shared library with a gate of its own. */
#include "gates.h"
GATED_MODULE
int work(int n) {
  for (int i = 0; i < n; i++) GATE(0x77);
  return n;
}
