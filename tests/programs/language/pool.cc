// A thread pool with futures, packaged tasks and lambdas that capture shared data.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

class Pool {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    std::vector<std::thread> workers;
    bool closed = false;

    void run() {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> hold(lock);
                changed.wait(hold, [this] { return closed || !tasks.empty(); });
                if (tasks.empty()) {
                    return;
                }
                task = std::move(tasks.front());
                tasks.pop_front();
            }
            task();
        }
    }

  public:
    explicit Pool(int count) {
        for (int i = 0; i < count; i++) {
            workers.emplace_back([this] { run(); });
        }
    }
    ~Pool() {
        {
            std::lock_guard<std::mutex> hold(lock);
            closed = true;
        }
        changed.notify_all();
        for (auto &worker : workers) {
            worker.join();
        }
    }
    template <typename F> auto submit(F function) {
        using Result = decltype(function());
        auto task = std::make_shared<std::packaged_task<Result()>>(std::move(function));
        auto future = task->get_future();
        {
            std::lock_guard<std::mutex> hold(lock);
            tasks.emplace_back([task] { (*task)(); });
        }
        changed.notify_one();
        return future;
    }
};

int main() {
    std::mutex lock;
    int finished = 0;
    std::vector<std::future<int>> results;
    int sum = 0;
    {
        Pool pool(3);
        for (int i = 0; i < 8; i++) {
            results.push_back(pool.submit([i, &lock, &finished] {
                if (i == 5) {
                    throw std::runtime_error("five");
                }
                std::lock_guard<std::mutex> hold(lock);
                finished++;
                return i * i;
            }));
        }
        for (auto &result : results) {
            try {
                sum += result.get();
            } catch (const std::runtime_error &error) {
                sum += 1000;
            }
        }
    }
    auto later = std::async(std::launch::async, [sum] { return sum + 1; });
    std::promise<int> promise;
    std::thread setter([&promise] { promise.set_value(7); });
    int promised = promise.get_future().get();
    setter.join();
    printf("%d %d %d\n", finished, later.get(), promised);
    return finished == 7 ? 0 : 1;
}
