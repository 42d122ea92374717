// A formatter hands out the address of its thread-local buffer in a structure that goes through a queue; the next line is
// formatted before the other thread has read this one.
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <queue>
#include <thread>

struct Span {
    const char *text;
    size_t length;
};

static thread_local char scratch[16];

static Span format(int number)
{
    int length = std::snprintf(scratch, sizeof scratch, "%d", number);
    return {scratch, static_cast<size_t>(length)};
}

int main()
{
    std::mutex mutex;
    std::condition_variable filled;
    std::queue<Span> lines;
    std::thread writer([&] {
        char expected = '1';
        for (int i = 0; i < 3; i++) {
            Span span;
            {
                std::unique_lock<std::mutex> lock(mutex);
                filled.wait(lock, [&] { return !lines.empty(); });
                span = lines.front();
                lines.pop();
            }
            assert(span.text[0] == expected);
            expected++;
        }
    });
    for (int i = 1; i <= 3; i++) {
        Span span = format(i);
        std::lock_guard<std::mutex> lock(mutex);
        lines.push(span);
        filled.notify_one();
    }
    writer.join();
}
