// Hooks in the destructors of thread-local objects, and exceptions through the runtime's frames.
#include "hooks.h"
#include <mutex>
#include <stdexcept>
#include <thread>

struct Last {
  ~Last() { block(77); }
};
static thread_local Last last;
static std::once_flag flag;

int main(int arguments, char **) {
  std::thread first([] { (void)&last; block(1); });
  first.join();
  bool caught = false;
  try {
    std::call_once(flag, [] { throw std::runtime_error("first"); });
  } catch (const std::exception &) {
    caught = true;
  }
  std::call_once(flag, [] { block(2); });
  if (arguments > 1) throw std::runtime_error("uncaught");
  return caught ? 0 : 1;
}
