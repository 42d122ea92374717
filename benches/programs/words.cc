// Counts words: every thread its part of the text into an own map, then all into one. Strings,
// a hash map and allocation, most of it library code instantiated in the program.
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

constexpr int threads = 2;
constexpr int words = 4000000;

using Counts = std::unordered_map<std::string, int>;

std::mutex mutex;
Counts all;

std::string text(std::uint32_t seed) {
  std::string result;
  for (int i = 0; i < words; i++) {
    seed = seed * 1103515245 + 12345;
    std::uint32_t word = (seed >> 12) % 5000;
    for (int letter = 0; letter < 3 + int(word % 9); letter++) {
      result.push_back(char('a' + (word * 7 + letter * 11) % 26));
      word = word * 5 / 3 + 1;
    }
    result.push_back(' ');
  }
  return result;
}

void count(int part) {
  const std::string from = text(part + 1);
  Counts own;
  std::string word;
  for (char letter : from) {
    if (letter == ' ') {
      own[word]++;
      word.clear();
    } else {
      word.push_back(letter);
    }
  }
  std::lock_guard<std::mutex> guard(mutex);
  for (const auto &[key, times] : own) all[key] += times;
}

}  // namespace

int main() {
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; i++) workers.emplace_back(count, i);
  for (auto &worker : workers) worker.join();
  long sum = 0;
  for (const auto &[key, times] : all) sum += times * long(key.size());
  std::printf("%zu %ld\n", all.size(), sum);
}
