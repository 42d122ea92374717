// Two totals, of which only the second one's updates can be lost.
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace {

struct Totals {
    std::atomic<unsigned long> orders{0};
    unsigned long pieces = 0;

    void add(unsigned long number) {
        ++orders;
        pieces += number;
    }
};

Totals totals;

TEST(Totals, KeepEveryOrder) {
    std::thread other([] {
        for (int i = 0; i < 3; ++i)
            totals.add(1);
    });
    for (int i = 0; i < 3; ++i)
        totals.add(1);
    other.join();
    EXPECT_EQ(totals.orders, 6UL);
    EXPECT_EQ(totals.pieces, totals.orders); // the check
}

}  // namespace
