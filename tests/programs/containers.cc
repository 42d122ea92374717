// Every access and lock happens inside the standard library; the names have to be the program's.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

class Desk {
public:
    void put(int job)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (jobs_.empty())
            jobs_.push_back(job);
        jobs_.push_back(job);
        ready_.notify_one();
        posted_.fetch_add(1);
    }

    int take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        while (jobs_.empty())
            ready_.wait(lock);
        int job = jobs_.front();
        jobs_.pop_front();
        return job + posted_.load();
    }

    void price(int job, int price)
    {
        std::unique_lock<std::shared_mutex> lock(prices_lock_);
        prices_[job] = price;
    }

    int price_of(int job)
    {
        std::shared_lock<std::shared_mutex> lock(prices_lock_);
        auto found = prices_.find(job);
        return found == prices_.end() ? 0 : found->second;
    }

    void rename(const std::string &name)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        name_ = name;
    }

    std::string name()
    {
        std::lock_guard<std::mutex> lock(mutex_);
        return name_;
    }

private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<int> jobs_;
    std::atomic<int> posted_{ 0 };
    std::shared_mutex prices_lock_;
    std::map<int, int> prices_;
    std::string name_ = "desk";
};

int main()
{
    Desk desk;
    std::thread clerk([&desk] {
        int job = desk.take();
        desk.price(job, 10);
        desk.price(job + 1, desk.price_of(job) + int(desk.name().size()));
    });
    desk.put(1);
    desk.price(7, 70);
    desk.rename("front desk");
    clerk.join();
    return desk.price_of(1) > 1000;
}
