// Two threads count in an array on the stack without a lock. Where that lay, a stream lies afterwards: what the library
// leaves there comes from nobody's write.
#include <cassert>
#include <cstdio>
#include <fstream>
#include <thread>

static const char *const NAME = "stream-after-threads.txt";
// Those that are counted in lie where the stream has its state.
enum { COUNTERS = 150, FIRST = 68, LAST = 78 };

static void count(int *counters)
{
    for (int i = FIRST; i < LAST; i++) {
        counters[i] += 1;
    }
}

int main()
{
    {
        std::ofstream out(NAME);
        out << "1\n2\n3\n";
    }
    int counted = 0, sum = 0;
    {
        int counters[COUNTERS] = {0};
        std::thread one(count, counters), other(count, counters);
        one.join();
        other.join();
        for (int counter : counters) {
            counted += counter;
        }
    }
    {
        std::ifstream in(NAME);
        int number;
        while (in >> number) {
            sum += number;
        }
    }
    std::remove(NAME);
    assert(sum == 6);
    assert(counted == 2 * (LAST - FIRST));
    return 0;
}
