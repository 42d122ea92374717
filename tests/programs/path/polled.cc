// What `polls.cc` calls.
#include <atomic>

extern std::atomic<int> turn;
static long calls;
static std::atomic<long> questions{0};

extern "C" bool is_turn(int number) { return turn.load(std::memory_order_acquire) == number; }

extern "C" int look_far(int number, int most) {
  int rounds = 0;
  while (turn.load() != number && rounds < most) rounds++;
  return rounds;
}

extern "C" bool once_more(bool (*look)(int), int number, int depth) {
  bool found = false;
  int rounds = 0;
  while (!(found = depth ? once_more(look, number, depth - 1) : look(number)) && rounds < 2) rounds++;
  return found;
}

extern "C" void pass_on(int number) {
  calls++;
  turn = number;
}

extern "C" long asked(void) { return questions.load(std::memory_order_relaxed) + 1; }
