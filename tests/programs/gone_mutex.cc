// A thread outlives the function that has started it, and asks for that function's mutex.
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

static int jobs;

__attribute__((noinline)) static void start()
{
    std::mutex m;
    std::thread([&m] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::lock_guard<std::mutex> guard(m);
        jobs--;
    }).detach();
    std::lock_guard<std::mutex> guard(m);
    jobs++;
}

__attribute__((noinline)) static void scribble()
{
    volatile char room[1024];
    for (volatile char &byte : room)
        byte = 0x7f;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

int main()
{
    start();
    scribble();
    return 0;
}
