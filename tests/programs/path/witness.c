// Is told of every block that instrumented code enters, and keeps what it is told per thread in a
// mapped file, so that nothing is lost whatever ends the process.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 1 << 24, THREADS = 2 };

// The runtime's: a thread's number is its eighth word.
extern __thread uint64_t *__symbiosis_control;

static volatile uint64_t *files[THREADS];
static __thread uint64_t count;

// Before the program begins: a signal that came in a system call made here later would be handled at
// once, in the middle of instrumented code, where no handler runs without a witness.
__attribute__((constructor(101))) static void begin(void) {
  for (int n = 0; n < THREADS; n++) {
    char name[64];
    snprintf(name, sizeof name, "witness.%d", n + 1);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (fd < 0 || ftruncate(fd, ROOM * 8l)) abort();
    // Not by the function, which the recorder logs as a call of the program's own.
    long place = syscall(SYS_mmap, NULL, ROOM * 8l, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0l);
    if (place == -1) abort();
    files[n] = (volatile uint64_t *)place;
    close(fd);
  }
}

void __symbiosis_witness(uint32_t function, uint32_t block) {
  uint64_t serial = __symbiosis_control[8];
  // The thread's log has ended, and a signal's handler runs in it once more.
  if (!serial) return;
  if (serial - 1 >= THREADS) abort();
  // In one step: a signal's handler may come in between.
  uint64_t at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  if (at < ROOM) files[serial - 1][at] = (uint64_t)function << 32 | (block + 1);
}
