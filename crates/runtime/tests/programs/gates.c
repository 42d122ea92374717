/* One scenario per argument; the tests say what it must print. */
#include "gates.h"
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <unwind.h>

GATED_MODULE
/* The second module of the same executable. */
static uint32_t second_base;
static struct Module second = {INSTRUMENTATION, 0, 0, 0, {13, 14}, "second", 6, functions, functions,
                               &second_base, 0, __start_symbiosis_sites, __stop_symbiosis_sites,
                               gate_thunk};
__attribute__((constructor)) static void construct_second(void) { __symbiosis_register(&second); }

#ifdef BROKEN_GATE
__asm__(".text\n.globl first_gate\nfirst_gate: nop\n.pushsection symbiosis_sites,\"a\",@progbits\n"
        "1: .long first_gate - 1b\n.quad 0x21\n.popsection\nnop\nnop\nnop\nnop\nret\n");
#else
__asm__(".text\n.globl first_gate\nfirst_gate:\n" GATE_TEXT("first", 0x21) "ret\n");
#endif
extern const unsigned char first_gate[];

/* The site's hash is that of its name: gates.c:pass:write:x. Below: gates.c:across:write:x. */
static __attribute__((noinline)) void pass(long n) {
  for (long i = 0; i < n; i++) GATE(0xf5ae88a6f184a99c);
}

/* Says whether gates are open, and what they counted. */
static void say(const char *who) {
  printf("%s %s %lu\n", who, first_gate[0] == 0xe8 ? "open" : "closed", passed());
  fflush(stdout);
}

static void counts(void) { pass(1000); say("t0"); }

static void *worker(void *n) { pass((long)n); return (void *)passed(); }
static void threads(void) {
  pthread_t thread[4];
  for (long i = 0; i < 4; i++) pthread_create(&thread[i], 0, worker, (void *)(10000 + i));
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(thread[i], &result);
    printf("%lu\n", (uint64_t)result);
  }
}

/* Everything that a gate has to keep. */
struct State {
  uint64_t general[15], flags;
  uint32_t mxcsr;
  uint16_t x87_control, reserved;
  double x87_top;
  unsigned char vector[16][32];
};
_Static_assert(offsetof(struct State, vector) == 144, "as in the assembly below");
/* Loads `before`, passes the gate, stores into `after`. */
void across(const struct State *before, struct State *after, long avx);
#define EACH(M) \
  M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define LOAD_YMM(n) "vmovdqu 144+32*" #n "(%rdi), %ymm" #n "\n"
#define LOAD_XMM(n) "movups 144+32*" #n "(%rdi), %xmm" #n "\n"
#define STORE_YMM(n) "vmovdqu %ymm" #n ", 144+32*" #n "(%rdi)\n"
#define STORE_XMM(n) "movups %xmm" #n ", 144+32*" #n "(%rdi)\n"
#define GENERAL(M)                                                                            \
  M(0, rax) M(1, rbx) M(2, rcx) M(3, rdx) M(4, rsi) M(6, rbp) M(7, r8) M(8, r9) M(9, r10)     \
  M(10, r11) M(11, r12) M(12, r13) M(13, r14) M(14, r15)
#define LOAD(n, name) "movq 8*" #n "(%rdi), %" #name "\n"
#define STORE(n, name) "movq %" #name ", 8*" #n "(%rdi)\n"
__asm__(
    ".text\n.globl across\n.type across,@function\nacross:\n"
    "pushq %rbx\npushq %rbp\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "pushq %rdx\npushq %rsi\n"
    "ldmxcsr 128(%rdi)\nfldcw 132(%rdi)\nfldl 136(%rdi)\n"
    "testl %edx, %edx\njz 1f\n" EACH(LOAD_YMM) "jmp 2f\n1:\n" EACH(LOAD_XMM) "2:\n"
    "pushq 120(%rdi)\n" GENERAL(LOAD) "movq 40(%rdi), %rdi\n"
    "popfq\n"
    GATE_TEXT("across", 0x228e2bf78554e130)
    "pushfq\npushq %rdi\nmovq 16(%rsp), %rdi\n" GENERAL(STORE)
    "popq 40(%rdi)\npopq 120(%rdi)\ncld\n"
    "stmxcsr 128(%rdi)\nfnstcw 132(%rdi)\nfstpl 136(%rdi)\n"
    "cmpq $0, 8(%rsp)\nje 1f\n" EACH(STORE_YMM) "vzeroupper\njmp 2f\n1:\n" EACH(STORE_XMM) "2:\n"
    "addq $16, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\nret\n");

static void registers(void) {
  int avx = __builtin_cpu_supports("avx");
  /* CF, PF, AF, ZF, SF, DF, OF. */
  const uint64_t all = 0xcd5, kept = 0x202;
  uint64_t random = 88172645463325252u;
  uint32_t mxcsr;
  uint16_t control;
  __asm__ volatile("stmxcsr %0\nfnstcw %1" : "=m"(mxcsr), "=m"(control));
  for (int round = 0; round < 200; round++) {
    static struct State before, after;
    unsigned char *bytes = (unsigned char *)&before;
    for (size_t i = 0; i < sizeof before; i++) {
      random ^= random << 13; random ^= random >> 7; random ^= random << 17;
      bytes[i] = random >> 32;
    }
    before.flags = round == 0 ? all | kept : round == 1 ? kept : (before.flags & all) | kept;
    before.mxcsr = mxcsr ^ (round & 1 ? 0x6000 : 0);
    before.x87_control = control ^ (round & 1 ? 0x0c00 : 0);
    before.reserved = 0;
    before.x87_top = 1.5 * round;
    if (!avx) for (int i = 0; i < 16; i++) memset(before.vector[i] + 16, 0, 16);
    memset(&after, 0, sizeof after);
    across(&before, &after, avx);
    __asm__ volatile("ldmxcsr %0\nfldcw %1" ::"m"(mxcsr), "m"(control));
    after.flags = (after.flags & all) | kept;
    if (memcmp(&before, &after, sizeof before)) {
      for (size_t i = 0; i < sizeof before; i++)
        if (bytes[i] != ((unsigned char *)&after)[i]) {
          printf("byte %zu differs in round %d\n", i, round);
          exit(3);
        }
    }
  }
  printf("kept %s\n", first_gate[0] == 0xe8 ? "open" : "closed");
}

static void forks(void) {
  pass(100);
  pid_t child = fork();
  if (!child) {
    pass(1000);
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, worker, (void *)50);
    pthread_join(thread, &result);
    _exit(stop() == UINT64_MAX && (uint64_t)result == 50 ? 7 : 8);
  }
  int status;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  say("t0");
}

static volatile uint64_t handled;
static void handler(int signal) { (void)signal; pass(10); handled += 10; }
static void signals(void) {
  signal(SIGALRM, handler);
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, 0);
  uint64_t n = 0;
  while (handled < 2000) { pass(1000); n += 1000; }
  setitimer(ITIMER_REAL, &never, 0);
  printf("%s\n", passed() == n + handled ? "exact" : "wrong");
}

/* Steps through a gate and unwinds the stack at every instruction. */
static void stepped(void);
static uint64_t callers[2], steps, lost;
static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *found) {
  for (int i = 0; i < 2; i++) *(int *)found |= (_Unwind_GetRegionStart(context) == callers[i]) << i;
  return _URC_NO_REASON;
}
static void step(int signal, siginfo_t *info, void *context) {
  char *pc = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  int found = 0;
  (void)signal; (void)info;
  if (_Unwind_FindEnclosingFunction(pc + 1) == stepped) return;
  _Unwind_Backtrace(frame, &found);
  steps++;
  lost += found != 3;
}
static __attribute__((noinline)) void stepped(void) {
  __asm__ volatile("pushfq\norq $0x100, (%%rsp)\npopfq" ::: "memory", "cc");
  pass(3);
  __asm__ volatile("pushfq\nandq $~0x100, (%%rsp)\npopfq" ::: "memory", "cc");
}
static void unwinds(void) {
  pass(1);
  callers[0] = (uint64_t)stepped;
  callers[1] = (uint64_t)pass;
  struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, 0);
  stepped();
  printf("%s %lu of %lu\n", steps > 100 ? "many" : "few", lost, steps);
}

static void library(const char *name) {
  pass(5);
  void *object = dlopen(name, RTLD_NOW);
  if (!object) { puts(dlerror()); exit(4); }
  int (*work)(int) = (int (*)(int))dlsym(object, "work");
  if (work(20) != 20) exit(5);
  say("t0");
  dlclose(object);
  object = dlopen(name, RTLD_NOW);
  work = (int (*)(int))dlsym(object, "work");
  if (work(20) != 20) exit(6);
  say("t0");
}

/* Is there code that can be written, or a variable of the runtime in the environment? */
static void traces(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  while (fgets(line, sizeof line, maps)) found += strstr(line, " rwxp ") != 0;
  for (char **at = environ; *at; at++) found += strncmp(*at, "SYMBIOSIS_", 10) == 0;
  printf("%d\n", found);
}

int main(int arguments, char **argument) {
  const char *s = arguments > 1 ? argument[1] : "";
#define SCENARIO(name, call) if (!strcmp(s, name)) { call; }
  SCENARIO("counts", counts()) SCENARIO("threads", threads()) SCENARIO("registers", registers())
  SCENARIO("fork", forks()) SCENARIO("signals", signals()) SCENARIO("traces", traces())
  SCENARIO("unwinds", unwinds()) SCENARIO("library", library(argument[2]))
  return 0;
}
