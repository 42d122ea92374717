/* Loops that wait, by hand: what happens is in the first argument. */
#include "hooks.h"

static uint32_t base;
static uint64_t functions[1];
static const uint8_t defined[1] = {0};
static struct Module module = {INSTRUMENTATION, 1, 0, 1, {0x1122, 0x99}, "bitcode", 7, functions, functions,
                               &base, defined};
__attribute__((constructor)) static void construct(void) { __symbiosis_register(&module); }

static void enter(uint32_t index) {
  block(index);
  __symbiosis_control->round = 0;
}
/* What the hook behind an atomic update does. */
static void reading(uint64_t word) {
  value(word);
  volatile struct Control *c = __symbiosis_control;
  c->reading_at[c->readings % 4] = c->value_next - 8;
  c->readings++;
}
static void rounds(int count, uint32_t choices, uint64_t found) {
  for (int i = 0; i < count; i++) { value(found); __symbiosis_round(choices, 1); }
}

static void counts(void) {
  enter(1);
  rounds(1000, 2, 7);
  rounds(5, 3, 7);
  rounds(5, 3, 8);
  rounds(4, 500, 8);
}

/* A loop that is left and entered again begins anew, also when it does the same every time. */
static void enters(void) {
  for (int i = 0; i < 4; i++) {
    enter(1);
    rounds(1, 2, 7);
  }
  enter(1);
  rounds(3, 2, 7);
}

/* A loop in a function that is called in each round has rounds of its own. */
static void nests(void) {
  enter(1);
  for (int i = 0; i < 4; i++) {
    __symbiosis_control->round = 0;
    for (int j = 0; j < 3; j++) { value(5); __symbiosis_round(2, 9); }
    rounds(1, 3, 7);
  }
  rounds(3, 3, 7);
}

static void changes(void) {
  enter(1);
  for (int i = 0; i < 6; i++) {
    if (i < 3) __symbiosis_control->round_changes |= 1;
    rounds(1, 2, 7);
  }
}

/* Readings differ, and what stands beside them must not. */
static void reads(void) {
  enter(1);
  for (uint64_t i = 0; i < 10; i++) {
    reading(1000 + i);
    reading(~i << 56);
    rounds(1, 2, i < 5 ? 7 : 8);
  }
  for (uint64_t i = 0; i < 4; i++) {
    for (int j = 0; j < 5; j++) reading(i);
    rounds(1, 2, 7);
  }
}

static volatile sig_atomic_t handled;
static void handle(int number) { block(100 + number); handled++; }
/* The handler runs between two rounds, and does more than they do. */
static void signals(void) {
  struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR1, &action, 0);
  enter(1);
  for (int i = 0; i < 3; i++) {
    rounds(10, 2, 7);
    raise(SIGUSR1);
  }
  rounds(10, 2, 7);
}

/* More than a window holds. */
static void fills(void) {
  enter(1);
  for (uint64_t i = 0; i < 200000; i++) rounds(1, 2 + i % 2, i / 3);
}

/* Rounds that log no values: only their counts do, more than a window holds. */
static void pauses(void) {
  for (int i = 0; i < 20000; i++) {
    enter(1);
    for (int j = 0; j < 20; j++) __symbiosis_round(2, 1);
  }
}

/* Of loop i, so many rounds. */
static void *forever(void *argument) {
  for (uint64_t i = 0;; i++) {
    enter(i % 1000);
    rounds(i % 50, 2 + i % 2, i);
  }
  return argument;
}
static void endless(void) {
  pthread_t thread;
  pthread_create(&thread, 0, forever, 0);
  puts("ready"); fflush(stdout);
  forever(0);
}

static void forks(void) {
  pthread_t thread;
  pthread_create(&thread, 0, forever, 0);
  for (int i = 0; i < 20; i++) {
    usleep(2000);
    if (fork() == 0) _exit(0);
    wait(0);
  }
  _exit(0);
}

static void *run(void *call) { ((void (*)(void))call)(); return 0; }
int main(int arguments, char **argument) {
  const char *s = arguments > 1 ? argument[1] : "";
  pthread_t thread;
#define SCENARIO(name) if (!strcmp(s, #name)) pthread_create(&thread, 0, run, (void *)name);
  SCENARIO(counts) SCENARIO(enters) SCENARIO(changes) SCENARIO(reads) SCENARIO(signals) SCENARIO(fills)
  SCENARIO(nests) SCENARIO(endless) SCENARIO(forks) SCENARIO(pauses)
  pthread_join(thread, 0);
  return 0;
}
