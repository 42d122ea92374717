/* Gates as the instrumenter would make them, by hand. */
#include "hooks.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* In assembly text: a gate and its entry in the section. `id` makes the label unique. */
#define GATE_TEXT(id, hash)                                                                        \
  ".Lgate" id ": .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                             \
  ".pushsection symbiosis_sites,\"a\",@progbits\n"                                                 \
  ".Lsite" id ": .long .Lgate" id " - .Lsite" id "\n.quad " TEXT(hash) "\n"                        \
  ".popsection\n"
#define GATE(hash) __asm__ volatile(GATE_TEXT("%=", hash) ::: "memory", "cc")

__asm__(".text\n.p2align 4\n.local gate_thunk\ngate_thunk:\n.cfi_startproc\n"
        "jmp *__symbiosis_gate@GOTPCREL(%rip)\n.p2align 4\n"
        "jmp *__symbiosis_gate_anchor@GOTPCREL(%rip)\n.cfi_endproc\n");
extern const char gate_thunk[] __attribute__((visibility("hidden")));
extern const char __start_symbiosis_sites[] __attribute__((visibility("hidden")));
extern const char __stop_symbiosis_sites[] __attribute__((visibility("hidden")));

#define GATED_MODULE                                                                               \
  static uint32_t base;                                                                            \
  static const uint64_t functions[1];                                                              \
  static struct Module module = {INSTRUMENTATION, 0, 0, 0, {11, 12}, "gates", 5, functions, functions, &base, 0, \
                                 __start_symbiosis_sites, __stop_symbiosis_sites, gate_thunk};     \
  __attribute__((constructor)) static void construct(void) { __symbiosis_register(&module); }

/* Words 17 and 18 of the control page. */
static inline uint64_t passed(void) { return ((volatile uint64_t *)__symbiosis_control)[17]; }
static inline uint64_t stop(void) { return ((volatile uint64_t *)__symbiosis_control)[18]; }
