/* An instrumented shared library: it uses the executable's runtime. */
#include "hooks.h"
static uint32_t base;
static const uint64_t functions[1];
static struct Module module = {INSTRUMENTATION, 1, 0, 0, {5, 6}, "library", 7, functions, 0, &base, 0};
__attribute__((constructor)) static void construct(void) { __symbiosis_register(&module); }
int work(void) { block(4); value(44); return base == 0 ? 3 : 2; }
