/* What the instrumenter would emit, by hand. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifndef INSTRUMENTATION
#error "compile with -DINSTRUMENTATION=<INSTRUMENTATION_VERSION of crates/trace-format>"
#endif
struct Control { uint64_t path_next, path_limit, value_next, value_limit, choices, more[21], round, round_path,
  round_values, round_changes, readings, reading_at[4]; };
extern __thread struct Control *__symbiosis_control __attribute__((tls_model("initial-exec")));
void __symbiosis_grow_path(void);
void __symbiosis_grow_values(void);
void __symbiosis_round(uint32_t, uint64_t);
struct Module {
  uint32_t version, function_count, global_count, reserved;
  uint64_t hash[2];
  const void *bitcode;
  uint64_t bitcode_length;
  const uint64_t *functions, *globals;
  uint32_t *base;
  const uint8_t *defined;
  const void *sites_begin, *sites_end, *gate;
};
void __symbiosis_register(const struct Module *);
void __symbiosis_external_write(const void *, uint64_t);
void __symbiosis_fallback_write(const void *, const void *, uint64_t);
void __symbiosis_pointee_write(const void *, const void *, uint64_t);
#ifdef __cplusplus
}
#endif

static inline void path(uint8_t token, uint32_t number) {
  volatile struct Control *c = __symbiosis_control;
  if (c->path_next >= c->path_limit) { __symbiosis_grow_path(); c = __symbiosis_control; }
  *(volatile uint8_t *)c->path_next = token;
  *(volatile uint32_t *)(c->path_next + 1) = number;
  c->path_next += 5;
}
static inline void value(uint64_t word) {
  volatile struct Control *c = __symbiosis_control;
  if (c->value_next >= c->value_limit) { __symbiosis_grow_values(); c = __symbiosis_control; }
  *(volatile uint64_t *)c->value_next = word;
  c->value_next += 8;
}
static inline void block(uint32_t index) { path(0x82, index); }
