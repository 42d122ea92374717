// A lock is taken to read by who has it to read already, while somebody waits to write.
#include <cstdio>
#include <shared_mutex>
#include <thread>

static std::shared_mutex lock;
static int prices[2] = {3, 5};

static int one(int place)
{
    std::shared_lock<std::shared_mutex> guard(lock);
    return prices[place];
}

static int sum()
{
    std::shared_lock<std::shared_mutex> guard(lock);
    return one(0) + one(1);
}

int main()
{
    std::thread other([] {
        for (int i = 0; i < 4; ++i) {
            std::unique_lock<std::shared_mutex> guard(lock);
            ++prices[i % 2];
        }
    });
    int sums = 0;
    for (int i = 0; i < 4; ++i)
        sums += sum();
    other.join();
    std::printf("%d\n", sums);
    return 0;
}
