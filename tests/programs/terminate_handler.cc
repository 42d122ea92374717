// Two threads check an account together and overdraw it: an exception that nobody catches, and a handler of the program's own
// that ends the process with a status.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>

static std::mutex lock;
static int balance = 10;

static void withdraw(int amount) {
    bool enough;
    {
        std::lock_guard<std::mutex> guard(lock);
        enough = balance >= amount;
    }
    if (!enough) return;
    usleep(100);
    std::lock_guard<std::mutex> guard(lock);
    balance -= amount;
    if (balance < 0) throw std::runtime_error("overdrawn");
}

static void ended() {
    std::fputs("terminated\n", stderr);
    std::_Exit(3);
}

int main() {
    std::set_terminate(ended);
    std::thread first(withdraw, 7), second(withdraw, 7);
    first.join();
    second.join();
}
