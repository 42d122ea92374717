// What a library has is used before it was loaded. With -DLIBRARY this is the library.
#ifdef LIBRARY
int answer(void) { return 42; }
#else
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static int (*answer)(void);

static void *load(void *path) {
  usleep(40000);
  void *library = dlopen(path, RTLD_NOW);
  if (library) answer = (int (*)(void))dlsym(library, "answer");
  return library;
}

int main(void) {
  pthread_t loader;
  pthread_create(&loader, 0, load, "./late.so");
  usleep(20000);
  assert(answer);
  pthread_join(loader, 0);
  return answer() == 42 ? 0 : 1;
}
#endif
