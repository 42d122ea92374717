// Subscribers are delivered to without the lock under which they come and go. Where it crashes, and whether what was read
// in a node that had been freed leads there, is another thing in every run.
#include <cstdio>
#include <list>
#include <mutex>
#include <thread>

struct Subscriber {
    int id;
    long seen;
};

class Topic {
public:
    void join(int id)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        subscribers_.push_back({id, 0});
    }

    void leave(int id)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        subscribers_.remove_if([id](const Subscriber& one) { return one.id == id; });
    }

    long deliver()
    {
        long sum = 0;
        for (auto& one : subscribers_) {
            one.seen++;
            sum += one.id;
        }
        return sum;
    }

private:
    std::mutex mutex_;
    std::list<Subscriber> subscribers_;
};

int main()
{
    Topic topic;
    for (int id = 0; id < 4; id++)
        topic.join(id);
    std::thread churn([&topic] {
        for (int id = 4; id < 24; id++) {
            topic.leave(id - 4);
            topic.join(id);
        }
    });
    long sum = 0;
    for (int round = 0; round < 20; round++)
        sum += topic.deliver();
    churn.join();
    std::printf("%d\n", sum >= 0);
}
