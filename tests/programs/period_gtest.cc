// A thread reads a member that is written behind its start. A later test starts a thread that uses what was freed.
#include <gtest/gtest.h>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

class Flusher {
  public:
    explicit Flusher(int rounds) : rounds_(rounds), thread_(&Flusher::run, this), period_(5) {}
    void finish() { thread_.join(); }
    int flushed() const { return flushed_; }

  private:
    void run()
    {
        int due = period_;
        for (int tick = 1; tick <= 5 * rounds_; tick++) {
            if (tick != due)
                continue;
            due += period_;
            flushed_++;
        }
    }

    int rounds_;
    std::thread thread_;
    int period_;
    std::atomic<int> flushed_{0};
};

TEST(Flusher, FlushesEachPeriod)
{
    auto flusher = std::make_unique<Flusher>(3);
    flusher->finish();
    EXPECT_EQ(flusher->flushed(), 3); // the check
}

struct Session {
    int requests = 0;
    bool closed = false;
};

TEST(Flusher, Later)
{
    std::map<std::string, long> counts;
    auto *session = new Session;
    std::thread client([&, session] {
        for (int i = 0; i < 2 && !session->closed; i++)
            session->requests++;
        counts["served"] += session->requests;
    });
    session->closed = true;
    delete session;
    client.join();
    EXPECT_EQ(counts.size(), 1u);
}
