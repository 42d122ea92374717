/*
 * Marks of failures for symbiosis. Found by `#include <symbiosis.h>` when `symbiosis cc` or
 * `symbiosis c++` compiles; for other compilers, copy this file or point -I at it.
 *
 * symbiosis_fail_if(condition) ends the process, as a failed assertion does, when the condition
 * holds: a run that gets there has failed, with a failure of the kind "user", and `symbiosis solve`
 * says which order of events made the condition true. Other than `assert` it stays in programs that
 * are compiled with NDEBUG.
 *
 * Compiled by anything else than symbiosis it does nothing, and the condition is not evaluated; so
 * the condition must not have effects.
 */
#ifndef SYMBIOSIS_H
#define SYMBIOSIS_H

#ifdef __SYMBIOSIS__

#ifdef __cplusplus
extern "C" {
#endif
/* Part of the runtime that every program linked by symbiosis has. */
__attribute__((noreturn, cold)) void symbiosis_fail(const char *condition, const char *file,
                                                    unsigned line, const char *function);
#ifdef __cplusplus
}
#endif

#define symbiosis_fail_if(condition)                                                               \
    ((condition) ? symbiosis_fail(#condition, __FILE__, __LINE__, __func__) : (void)0)

#else

#define symbiosis_fail_if(condition) ((void)sizeof((condition) ? 1 : 0))

#endif

#endif
