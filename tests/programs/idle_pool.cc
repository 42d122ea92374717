// Two workers lose one of three updates, so the program waits for the third one in vain. That the workers wait, too, is as it should
// be.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::condition_variable work, progress;
static int jobs;
static bool stop;
static int finished;

static void serve() {
    for (;;) {
        {
            std::unique_lock<std::mutex> lock(mutex);
            work.wait(lock, [] { return stop || jobs > 0; });
            if (stop)
                return;
            jobs--;
        }
        int done = finished;
        std::this_thread::yield();
        finished = done + 1;
        std::lock_guard<std::mutex> lock(mutex);
        progress.notify_one();
    }
}

int main() {
    std::vector<std::thread> workers;
    for (int i = 0; i < 2; i++)
        workers.emplace_back(serve);
    for (int i = 0; i < 3; i++) {
        std::lock_guard<std::mutex> lock(mutex);
        jobs++;
        work.notify_one();
    }
    {
        std::unique_lock<std::mutex> lock(mutex);
        auto all = [] { return finished == 3; };
        if (!progress.wait_for(lock, std::chrono::milliseconds(300), all)) {
            std::printf("%d of 3 jobs\n", finished);
            std::_Exit(1);
        }
        stop = true;
    }
    work.notify_all();
    for (auto &worker : workers)
        worker.join();
}
