// Two tellers add to one balance, each in two critical sections; a check of GoogleTest notices.
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

static std::mutex guard;
static int balance;

static int look()
{
    std::lock_guard<std::mutex> lock(guard);
    return balance;
}

static void deposit(int amount)
{
    int before = look();
    std::lock_guard<std::mutex> lock(guard);
    balance = before + amount;
}

TEST(Bank, Arithmetic)
{
    EXPECT_EQ(10 + 20, 30);
}

TEST(Bank, Sum)
{
    std::thread first(deposit, 10), second(deposit, 20);
    first.join();
    second.join();
    EXPECT_EQ(balance, 30); // the check
    SUCCEED();
}

TEST(Bank, Sign)
{
    EXPECT_GT(balance, 0);
}
