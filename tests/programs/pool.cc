// A pool of threads whose workers leave as soon as they are told to stop, with tasks still in the
// queue: what waits for these gets a broken promise.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int workers)
    {
        for (int i = 0; i < workers; i++)
            workers_.emplace_back([this] { run(); });
    }

    ~Pool()
    {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        for (std::thread &worker : workers_)
            worker.join();
    }

    template <class F> std::future<int> submit(F function)
    {
        auto task = std::make_shared<std::packaged_task<int()>>(function);
        std::future<int> result = task->get_future();
        {
            std::lock_guard<std::mutex> lock(mutex_);
            tasks_.emplace([task] { (*task)(); });
        }
        changed_.notify_one();
        return result;
    }

private:
    void run()
    {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
                if (stopping_)
                    return;
                task = std::move(tasks_.front());
                tasks_.pop();
            }
            task();
        }
    }

    std::vector<std::thread> workers_;
    std::queue<std::function<void()>> tasks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
};

static int wait_for(int number)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return number;
}

int main()
{
    std::vector<std::future<int>> results;
    {
        Pool pool(2);
        for (int i = 0; i < 6; i++)
            results.push_back(pool.submit([i] { return wait_for(i); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    int sum = 0;
    for (std::future<int> &result : results)
        sum += result.get();
    return sum != 15;
}
