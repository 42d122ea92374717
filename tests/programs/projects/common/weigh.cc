#include "queue.h"

#include <mutex>
#include <vector>

namespace {
std::mutex lock;
std::vector<int> seen;
}

extern "C" int weigh(int item)
{
    std::lock_guard<std::mutex> guard(lock);
    seen.push_back(item);
    return item > 5 ? 2 * item : item;
}
