#include "hooks.h"
int work(void);
static uint32_t base;
static const uint64_t functions[1];
static struct Module module = {INSTRUMENTATION, 1, 0, 0, {7, 8}, "program", 7, functions, 0, &base, 0};
__attribute__((constructor)) static void construct(void) { __symbiosis_register(&module); }
int main(void) { block(1); return work() == 3 && base == 1 ? 0 : 1; }
