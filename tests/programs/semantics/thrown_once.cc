// A routine that throws has not been run: the next thread runs it.
#include <cassert>
#include <mutex>
#include <stdexcept>
#include <thread>

static std::once_flag made;
static int tries;
static int maker;

static void make(int who)
{
    try {
        std::call_once(made, [who] {
            tries++;
            if (who == 1)
                throw std::runtime_error("not by the first one");
            maker = who;
        });
    } catch (const std::exception &) {
    }
}

int main()
{
    std::thread first(make, 1), second(make, 2);
    first.join();
    second.join();
    assert(tries != 2);
}
