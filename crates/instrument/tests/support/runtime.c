/* A stand-in for the runtime: it keeps each thread's streams in memory and writes everything into
   the file that MOCK_OUTPUT names when the program ends. The streams begin small, so that they
   have to grow. All gates are open when MOCK_GATES is set: every other one leads to the entry for
   anchors. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Room behind the limits: a path token has up to five bytes. */
#define SLACK 128

struct control {
  char *path_next, *path_limit, *value_next, *value_limit;
  uint64_t choices;
  char *path, *values;
  uint64_t other[17], called, called_as, rest[16];
};

struct descriptor {
  uint32_t version, functions, globals, flags;
  uint64_t hash[2];
  const char *bitcode;
  uint64_t bitcode_length;
  const uint64_t *function_addresses, *global_addresses;
  uint32_t *base;
  const char *defined;
  const struct site *sites_begin, *sites_end;
  const char *gate;
};

struct site {
  int32_t offset;
  uint64_t hash;
} __attribute__((packed, aligned(4)));

struct mark {
  struct control *control;
  int number;
};

static struct control none;
__attribute__((tls_model("initial-exec"))) __thread struct control *__symbiosis_control = &none;
static struct control *threads[64];
static atomic_int thread_count;
static const struct descriptor *modules[64];
static int module_count;
static uint32_t next_base = 100;
static struct mark marks[1 << 20];
static atomic_int mark_count;

static void grow(char **start, char **next, char **limit) {
  size_t used = *next - *start;
  size_t size = used ? used * 2 : 64;
  *start = realloc(*start, size + SLACK);
  memset(*start + used, 0, size + SLACK - used);
  *next = *start + used;
  *limit = *start + size;
}

static struct control *own(void) {
  if (__symbiosis_control == &none) {
    __symbiosis_control = calloc(1, sizeof none);
    threads[atomic_fetch_add(&thread_count, 1)] = __symbiosis_control;
  }
  return __symbiosis_control;
}

void __symbiosis_grow_path(void) {
  struct control *c = own();
  if (c->path_next >= c->path_limit) grow(&c->path, &c->path_next, &c->path_limit);
}

void __symbiosis_region_ended(void) { __symbiosis_grow_path(); }

void __symbiosis_grow_values(void) {
  struct control *c = own();
  if (c->value_next >= c->value_limit) grow(&c->values, &c->value_next, &c->value_limit);
}

/* The end of a region, as the hook writes it; no rounds are counted. */
void __symbiosis_round(uint32_t choices) {
  struct control *c = own();
  __symbiosis_grow_path();
  uint32_t token = choices < 128 ? choices : __builtin_bswap32(choices | 3u << 30);
  if (choices > 1) {
    memcpy(c->path_next, &token, choices < 128 ? 1 : 4);
    c->path_next += choices < 128 ? 1 : 4;
  }
  c->choices = 0;
  __symbiosis_grow_path();
}

/* Choices that wait for their region's end would be lost. */
static void put_path(uint8_t token) {
  struct control *c = own();
  if (c->choices > 1) abort();
  __symbiosis_grow_path();
  *c->path_next++ = token;
}

static void put_value(uint64_t word) {
  __symbiosis_grow_values();
  struct control *c = own();
  memcpy(c->value_next, &word, 8);
  c->value_next += 8;
}

void __symbiosis_external_write(const void *place, uint64_t length) {
  if (!length) return;
  put_path(0x90 + 9);
  put_value((uint64_t)place);
  put_value(length);
  for (uint64_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, (const char *)place + at, length - at < 8 ? length - at : 8);
    put_value(word);
  }
}

void __symbiosis_fallback_write(const void *callee, const void *object, uint64_t length) {
  for (int m = 0; m < module_count; m++)
    for (uint32_t f = 0; f < modules[m]->functions; f++)
      if (modules[m]->function_addresses[f] == (uint64_t)callee && modules[m]->defined[f]) return;
  __symbiosis_external_write(object, length);
}

void __symbiosis_pointee_write(const void *callee, const void *object, uint64_t length) {
  if (object) __symbiosis_fallback_write(callee, object, length);
}

/* Calls back, and nobody knows it. */
int apply(int (*function)(int), int number) { return function(number); }

/* An open gate keeps the flags and all registers. */
uint64_t gates_passed, anchors_passed;
__asm__(".text\n.globl __symbiosis_gate, __symbiosis_gate_anchor\n"
        "__symbiosis_gate: pushfq\nlock incq gates_passed(%rip)\npopfq\nret\n"
        "__symbiosis_gate_anchor: pushfq\nlock incq anchors_passed(%rip)\npopfq\nret\n");

static char *gate_of(const struct site *site) { return (char *)&site->offset + site->offset; }

static void open_gate(const struct site *site, const char *thunk) {
  char *gate = gate_of(site);
  if (memcmp(gate, "\x0f\x1f\x44\0\0", 5)) abort();
  int32_t distance = thunk - (gate + 5);
  char *page = (char *)((uint64_t)gate & ~4095ull);
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) abort();
  gate[0] = (char)0xe8;
  memcpy(gate + 1, &distance, 4);
}

static void check_gates(const struct descriptor *d) {
  if (module_count) {
    if (d->sites_begin != modules[0]->sites_begin || d->sites_end != modules[0]->sites_end) abort();
    return;
  }
  for (const struct site *site = d->sites_begin; site != d->sites_end; site++) {
    if (getenv("MOCK_GATES")) open_gate(site, d->gate + (site - d->sites_begin) % 2 * 16);
    else if (memcmp(gate_of(site), "\x0f\x1f\x44\0\0", 5)) abort();
  }
}

void __symbiosis_register(const struct descriptor *descriptor) {
  check_gates(descriptor);
  *descriptor->base = next_base;
  next_base += descriptor->functions + 10;
  modules[module_count++] = descriptor;
}

/* Called by the programs: what it is told is what the decoded path has to say. */
int mark(int number) {
  marks[atomic_fetch_add(&mark_count, 1)] = (struct mark){own(), number};
  return number;
}

static void word(FILE *file, uint64_t word) { fwrite(&word, 8, 1, file); }

__attribute__((destructor(101))) static void save(void) {
  FILE *file = fopen(getenv("MOCK_OUTPUT"), "wb");
  if (!file) abort();
  word(file, module_count);
  for (int m = 0; m < module_count; m++) {
    const struct descriptor *d = modules[m];
    word(file, d->version);
    word(file, d->hash[0]);
    word(file, d->hash[1]);
    word(file, *d->base);
    word(file, d->functions);
    for (uint32_t f = 0; f < d->functions; f++) word(file, d->function_addresses[f]);
    word(file, d->globals);
    for (uint32_t g = 0; g < d->globals; g++) word(file, d->global_addresses[g]);
    word(file, d->bitcode_length);
    fwrite(d->bitcode, 1, d->bitcode_length, file);
  }
  word(file, thread_count);
  for (int t = 0; t < thread_count; t++) {
    struct control *c = threads[t];
    word(file, c->path_next - c->path);
    fwrite(c->path, 1, c->path_next - c->path, file);
    word(file, c->value_next - c->values);
    fwrite(c->values, 1, c->value_next - c->values, file);
    uint64_t own_marks = 0;
    for (int m = 0; m < mark_count; m++) own_marks += marks[m].control == c;
    word(file, own_marks);
    for (int m = 0; m < mark_count; m++)
      if (marks[m].control == c) word(file, (uint64_t)(int64_t)marks[m].number);
  }
  const struct site *site = modules[0]->sites_begin, *end = modules[0]->sites_end;
  word(file, end - site);
  for (; site != end; site++) word(file, site->hash);
  word(file, gates_passed);
  word(file, anchors_passed);
  fclose(file);
}
