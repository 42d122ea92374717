/* One scenario per argument; the tests say what the trace must hold. */
#include "hooks.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <threads.h>

static uint32_t base;
static int variable;
static void *count(void *argument);
static uint64_t functions[3], globals[1];
static const uint8_t defined[3] = {1, 0, 0};
static struct Module module = {INSTRUMENTATION, 3, 1, 1, {0x1122334455667788, 0x99}, "bitcode", 7, functions,
                               globals, &base, defined};
__attribute__((constructor)) static void construct(void) {
  functions[0] = (uint64_t)count;
  functions[1] = (uint64_t)strlen;
  globals[0] = (uint64_t)&variable;
  __symbiosis_register(&module);
}

static void *count(void *argument) {
  for (uint64_t i = 0; i < (uint64_t)argument; i++) { block(i % 1000000); value(i); }
  return argument;
}

static void run(void *(*routine)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, 0, routine, argument)) exit(99);
  if (pthread_join(thread, 0)) exit(98);
}

static void streams(void) { run(count, (void *)300000); }

static void *nest(void *depth) {
  if (depth) run(nest, (char *)depth - 1);
  return 0;
}
static void names(void) { run(nest, (void *)2); run(nest, 0); }
static void deep(void) { run(nest, (void *)120); }

static void *detached(void *arg) { block((uint32_t)(uintptr_t)arg); return 0; }
static void detach(void) {
  for (long i = 0; i < 500; i++) {
    pthread_t thread;
    while (pthread_create(&thread, 0, detached, (void *)i)) usleep(1000);
    pthread_detach(thread);
    if (i % 50 == 0) usleep(2000);
  }
}

static void once_routine(void) { block(1); }
static struct timespec past(void) { struct timespec t = {1, 0}; return t; }
static void sync_calls(void) {
  static pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  static pthread_mutex_t n = PTHREAD_MUTEX_INITIALIZER;
  static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;
  static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
  static pthread_once_t o = PTHREAD_ONCE_INIT;
  static sem_t s; static pthread_barrier_t b; static pthread_spinlock_t l;
  struct timespec t = past();
  pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
  pthread_mutex_lock(&n);
  if (pthread_mutex_trylock(&n) != EBUSY) exit(97);
  if (pthread_cond_timedwait(&c, &n, &t) != ETIMEDOUT) exit(96);
  pthread_cond_signal(&c); pthread_cond_broadcast(&c);
  pthread_mutex_unlock(&n);
  pthread_rwlock_rdlock(&r); pthread_rwlock_unlock(&r);
  pthread_rwlock_wrlock(&r);
  if (pthread_rwlock_tryrdlock(&r) != EBUSY) exit(95);
  pthread_rwlock_unlock(&r);
  sem_init(&s, 0, 1); sem_wait(&s);
  if (sem_trywait(&s) != -1 || errno != EAGAIN) exit(94);
  if (sem_timedwait(&s, &t) != -1 || errno != ETIMEDOUT) exit(93);
  sem_post(&s);
  pthread_barrier_init(&b, 0, 1); pthread_barrier_wait(&b);
  pthread_spin_init(&l, 0);
  pthread_spin_lock(&l);
  if (pthread_spin_trylock(&l) != EBUSY) exit(92);
  pthread_spin_unlock(&l);
  pthread_once(&o, once_routine);
}

/* Critical sections of mutexes that are free, then of one that is not, then of other kinds. */
static pthread_mutex_t free_ones[3], robust;
static _Atomic int held;
static void *holds(void *mutex) {
  pthread_mutex_lock(mutex); held = 1; usleep(20000); pthread_mutex_unlock(mutex); return 0;
}
static void *leaves(void *mutex) { pthread_mutex_lock(mutex); return 0; }
static void sections(void) {
  static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  static pthread_mutex_t checks = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  pthread_mutexattr_t attributes;
  pthread_t thread;
  for (int i = 0; i < 30; i++) {
    pthread_mutex_lock(&free_ones[i % 3]);
    pthread_mutex_unlock(&free_ones[i % 3]);
  }
  block(1);
  pthread_create(&thread, 0, holds, free_ones);
  while (!held) sched_yield();
  pthread_mutex_lock(free_ones); pthread_mutex_unlock(free_ones);
  pthread_join(thread, 0);
  block(2);
  pthread_mutex_lock(&recursive); pthread_mutex_lock(&recursive);
  pthread_mutex_unlock(&recursive); pthread_mutex_unlock(&recursive);
  pthread_mutex_lock(&checks);
  if (pthread_mutex_lock(&checks) != EDEADLK) exit(83);
  pthread_mutex_unlock(&checks);
  if (pthread_mutex_unlock(&checks) != EPERM) exit(82);
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &attributes);
  run(leaves, &robust);
  if (pthread_mutex_lock(&robust) != EOWNERDEAD) exit(81);
  pthread_mutex_unlock(&robust);
  if (pthread_mutex_lock(&robust) != ENOTRECOVERABLE) exit(80);
}

static int c11_thread(void *argument) { block(5); return (int)(intptr_t)argument; }
static void c11(void) {
  mtx_t m; thrd_t t; int result = 0;
  mtx_init(&m, mtx_plain);
  mtx_lock(&m);
  if (mtx_trylock(&m) != thrd_busy) exit(91);
  mtx_unlock(&m);
  thrd_create(&t, c11_thread, (void *)42);
  thrd_join(t, &result);
  if (result != 42) exit(90);
}

static void heap(void) {
  char *volatile p = malloc(10); value((uint64_t)p);
  p = realloc(p, 5000); value((uint64_t)p);
  free(p);
  p = calloc(3, 7); free(p); free(0);
  void *q = 0;
  if (posix_memalign(&q, 256, 100) || (uintptr_t)q % 256) exit(89);
  if (posix_memalign(&q, 3, 100) != EINVAL) exit(88);
  free(q);
  p = strdup("hello"); free(p);
  p = aligned_alloc(64, 64); free(p);
  p = reallocarray(0, SIZE_MAX / 2, 3);
  if (p || errno != ENOMEM) exit(87);
}

static void maps(void) {
  int all = PROT_READ | PROT_WRITE, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  char *p = mmap(0, 5000, all, anonymous, -1, 0);
  if (munmap(p + 4096, 100) || munmap(p + 1, 4096) != -1 || errno != EINVAL) exit(86);
  if (mmap(0, 0, all, anonymous, -1, 0) != MAP_FAILED || errno != EINVAL) exit(85);
  char *room = mmap(0, 5 * 4096, all, anonymous, -1, 0);
  p[5] = 7;
  p = mremap(p, 4096, 4 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, room + 4096);
  if (p != room + 4096 || p[5] != 7 || mremap(p, 4 * 4096, 100, 0) != p) exit(84);
  if (mremap(p, 4096, 8192, 0) != p || p[4096]) exit(83);
  int fd = open("/proc/self/exe", O_RDONLY);
  char *file = mmap64(0, 4, PROT_READ, MAP_SHARED, fd, 0);
  if (file == MAP_FAILED || file[1] != 'E') exit(82);
  munmap(file, 4);
}

static void writes(void) {
  char text[] = "0123456789";
  __symbiosis_external_write(text, 10);
  __symbiosis_external_write(text, 0);
  __symbiosis_fallback_write((void *)count, text, 3);
  __symbiosis_fallback_write((void *)strlen, text, 3);
  __symbiosis_fallback_write(0, text, 8);
  static char large[3 << 20];
  __symbiosis_external_write(large, sizeof large);
  char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(pages + 4088, text, 8);
  mprotect(pages + 4096, 4096, PROT_NONE);
  __symbiosis_pointee_write(0, pages + 4088, 16);
  __symbiosis_pointee_write(0, pages + 4096, 16);
  /* A module that is loaded later has the function that nobody had before. */
  static uint32_t later_base;
  static const uint8_t has[1] = {1};
  static uint64_t its[1];
  static struct Module later = {INSTRUMENTATION, 1, 0, 1, {0x55, 0x66}, "later", 5, its, its, &later_base, has};
  its[0] = (uint64_t)strlen;
  __symbiosis_pointee_write((void *)count, text, 4);
  __symbiosis_pointee_write((void *)strlen, text, 4);
  __symbiosis_register(&later);
  __symbiosis_pointee_write((void *)strlen, text, 5);
  __symbiosis_fallback_write((void *)strlen, text, 5);
}

/* A library that is loaded as another thread ends the process. */
static void *loads(void *argument) {
  static uint32_t its_base;
  static const uint8_t has[1] = {1};
  static uint64_t its[1];
  static struct Module late = {INSTRUMENTATION, 1, 0, 1, {0x77, 0x88}, "late", 4, its, its, &its_base, has};
  its[0] = (uint64_t)strlen;
  __symbiosis_register(&late);
  return argument;
}
static void loads_meanwhile(void) {
  pthread_t thread;
  pthread_create(&thread, 0, loads, 0);
  usleep(100000);
  abort();
}

static void *asserts(void *argument) { block(1); assert(!argument); return 0; }
static void *aborts(void *argument) { block(1); abort(); return argument; }
static void *faults(void *argument) { block(1); *(volatile int *)((char *)argument + 0x18) = 1; return 0; }
/* As threads do that leave all signals to another one. */
static void *faults_masked(void *argument) {
  sigset_t all, now;
  sigfillset(&all);
  if (pthread_sigmask(SIG_BLOCK, &all, 0) || pthread_sigmask(SIG_BLOCK, 0, &now)) exit(97);
  if (!sigismember(&now, SIGUSR1) || !sigismember(&now, SIGINT)) exit(96);
  if (sigprocmask(12345, &all, 0) != -1 || errno != EINVAL) exit(95);
  return faults(argument);
}
static void *divides(void *argument) {
  volatile int zero = 0, many = 100;
  block(1); zero = many / zero; return argument;
}
static void *overflows(void *argument) {
  volatile char page[4096]; page[0] = 1;
  overflows((void *)page);
  page[1] = 1; return argument;
}
static void *exits(void *argument) { block(1); exit(7); return argument; }
static void *exits_at_once(void *argument) { block(1); _exit(9); return argument; }
static void *thread_exits(void *argument) { block(1); pthread_exit(argument); return 0; }
static void twice(void) { char *volatile p = malloc(50); free(p); free(p); }
static void handler(int signal) { (void)signal; _exit(0); }
static void own_handler(void) { signal(SIGSEGV, handler); *(volatile int *)8 = 1; }
static jmp_buf place;
static void jumps(void) { if (!setjmp(place)) longjmp(place, 1); block(2); }

static void forks(void) {
  block(1);
  pid_t child = fork();
  if (!child) { count((void *)100000); run(count, (void *)100000); free(malloc(1)); abort(); }
  int status; waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) exit(86);
  if (!(child = vfork())) _exit(3);
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 3) exit(85);
  if (system("test -z \"$SYMBIOSIS_TRACE_DIR\"")) exit(84);
  block(2);
}

static void *forever(void *argument) {
  for (uint64_t i = 0;; i++) { value(i); block(i % 1000); }
  return argument;
}
static void endless(void) {
  pthread_t thread;
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, forever, 0);
  puts("ready"); fflush(stdout);
  forever(0);
}

static void *busy(void *argument) {
  for (uint64_t i = 0;; i++) {
    value(i);
    block(i % 1000);
    if (i % 3000 == 0) usleep(300);
  }
  return argument;
}
/* The children go on with the stream of the thread that forks, from where the parent was. */
static void busy_forks(void) {
  pthread_t thread;
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, busy, 0);
  uint64_t count = 0;
  for (int i = 0; i < 10; i++) {
    for (int j = 0; j < 3777; j++, count++) { value(count); block(count % 1000); }
    int child = fork();
    if (child == 0) {
      for (int j = 0; j < 20000; j++, count++) { value(count); block(count % 1000); }
      _exit(0);
    }
    for (int j = 0; j < 9000; j++, count++) { value(count); block(count % 1000); }
    waitpid(child, 0, 0);
  }
  _exit(0);
}

/* Both ends of a connection, a copy of one; what reads nothing; the end; and what others than these calls write. */
static void connections(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr *any = (struct sockaddr *)&address;
  socklen_t size = sizeof address;
  char bytes[8];
  int listening = socket(AF_INET, SOCK_STREAM, 0), mine = socket(AF_INET, SOCK_STREAM, 0);
  bind(listening, any, size);
  listen(listening, 1);
  getsockname(listening, any, &size);
  if (connect(mine, any, size)) exit(97);
  int theirs = accept(listening, 0, 0), copy = fcntl(theirs, F_DUPFD, 0);
  send(mine, "12345", 5, 0);
  recv(theirs, bytes, 2, MSG_PEEK);
  recv(theirs, bytes, 2, 0);
  read(copy, bytes, 8);
  recv(copy, bytes, 8, MSG_DONTWAIT);
  close(theirs);
  close(copy);
  read(mine, bytes, 1);
  read(mine, bytes, 1);
  sendfile(mine, open("/dev/null", O_RDONLY), 0, 1);
  close(mine);
  int pipes[2];
  pipe(pipes);
  write(pipes[1], "x", 1);
  read(pipes[0], bytes, 1);
}

/* Another root directory and another user: both need a privilege, without which nothing changes. */
static void drops(void) {
  if (chroot("/usr/share")) {}
  if (setuid(65534)) {}
  for (int i = 0; i < 2; i++) run(count, (void *)200000);
}

int main(int arguments, char **argument) {
  const char *s = arguments > 1 ? argument[1] : "";
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#define SCENARIO(name, call) if (!strcmp(s, name)) { call; }
  SCENARIO("streams", streams()) SCENARIO("names", names()) SCENARIO("deep", deep())
  SCENARIO("detach", detach()) SCENARIO("sync", sync_calls()) SCENARIO("c11", c11())
  SCENARIO("sections", sections()) SCENARIO("connections", connections())
  SCENARIO("heap", heap()) SCENARIO("maps", maps()) SCENARIO("writes", writes()) SCENARIO("fork", forks())
  SCENARIO("assert", run(asserts, (void *)1)) SCENARIO("abort", run(aborts, 0))
  SCENARIO("fault", run(faults, 0)) SCENARIO("masked", run(faults_masked, 0)) SCENARIO("divide", run(divides, 0))
  SCENARIO("overflow", run(overflows, 0)) SCENARIO("exit", run(exits, 0))
  SCENARIO("_exit", run(exits_at_once, 0)) SCENARIO("thread-exit", run(thread_exits, 0))
  SCENARIO("twice", twice()) SCENARIO("own-handler", own_handler()) SCENARIO("jump", jumps())
  SCENARIO("endless", endless()) SCENARIO("busy-forks", busy_forks()) SCENARIO("return", return 5)
  SCENARIO("loads", loads_meanwhile()) SCENARIO("drops", drops())
  SCENARIO("many", run(count, (void *)2000000))
  printf("done %s\n", s);
  return 0;
}
