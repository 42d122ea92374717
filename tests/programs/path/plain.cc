// Code that is not instrumented, between code that is.
#include "calls.h"

int pass_on(int (*function)(int), int n) { return function(n) + 1; }
int pass_unsigned(int (*function)(unsigned), unsigned n) { return function(n) + 1; }
void pass_jump(jmp_buf to, int n) { leaps(to, n); }
