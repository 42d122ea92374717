// A writer waits until the last reader is gone, on a condition variable for any kind of lock, and the reader tells nobody.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>

class Access {
public:
    void begin_read()
    {
        std::shared_lock lock(mutex_);
        ++readers_;
    }

    void end_read()
    {
        std::shared_lock lock(mutex_);
        --readers_;
    }

    void write(int value)
    {
        std::unique_lock lock(mutex_);
        while (readers_ > 0)
            changed_.wait(lock);
        value_ = value;
    }

private:
    std::shared_mutex mutex_;
    std::condition_variable_any changed_;
    std::atomic<int> readers_{0};
    int value_ = 0;
};

static Access table;

int main()
{
    table.begin_read();
    std::thread writer([] { table.write(1); });
    usleep(100000);
    table.end_read();
    writer.join();
}
