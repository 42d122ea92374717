// What libstdc++ makes of the pthread functions, and what it does by itself: its semaphores, latches,
// barriers and guards of static objects sleep in the kernel, unseen by the scheduler.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>
using namespace std;

struct Slow {
  Slow() { this_thread::sleep_for(chrono::milliseconds(5)); }
};
static Slow &slow() { static Slow slow; return slow; }
static vector<thread> threads;
static void join() {
  for (auto &thread : threads) thread.join();
  threads.clear();
}

int main() {
  mutex m;
  condition_variable condition;
  bool ready = false;
  int count = 0;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&] {
      slow();
      unique_lock lock(m);
      condition.wait(lock, [&] { return ready; });
      count++;
    });
  { lock_guard lock(m); ready = true; }
  condition.notify_all();
  join();
  auto result = async(launch::async, [] { this_thread::sleep_for(chrono::hours(5)); return 42; });
  printf("%d %d\n", count, result.get());

  shared_mutex shared;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      if (i & 1) { unique_lock lock(shared); count++; } else { shared_lock lock(shared); }
    });
  join();
  counting_semaphore<4> semaphore(0);
  latch all(3);
  barrier meeting(3);
  atomic<int> met = 0;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] {
      semaphore.acquire();
      all.count_down();
      all.wait();
      meeting.arrive_and_wait();
      met++;
    });
  semaphore.release(3);
  join();
  printf("%d %d\n", count, met.load());

  unique_lock lock(m);
  auto begin = chrono::steady_clock::now();
  bool came = condition.wait_for(lock, chrono::hours(1), [] { return false; });
  printf("%d %d\n", came, chrono::steady_clock::now() - begin >= chrono::hours(1));
  recursive_timed_mutex again;
  again.lock();
  again.lock();
  thread([&] { printf("%d\n", again.try_lock_for(chrono::seconds(3))); }).join();
  once_flag once;
  int threw = 0, ran = 0;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] {
      try {
        call_once(once, [&] {
          this_thread::yield();
          if (!threw++) throw 1;
          ran++;
        });
      } catch (int) {
      }
    });
  join();
  printf("%d %d\n", threw, ran);
}
