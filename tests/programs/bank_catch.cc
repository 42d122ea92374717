// Two tellers add to one balance, each in two critical sections; a check of Catch2 notices.
#include <catch2/catch.hpp>
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

TEST_CASE("arithmetic")
{
    REQUIRE(10 + 20 == 30);
}

TEST_CASE("sum")
{
    std::thread first(deposit, 10), second(deposit, 20);
    first.join();
    second.join();
    CHECK_FALSE(balance == 0);
    REQUIRE(balance == 30); // the check
}
