// Names get numbers, looked up in one critical section and given in another one; a check of Catch2, which is compiled with it.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

class Stock {
  public:
    int number(const std::string &name)
    {
        {
            std::lock_guard<std::mutex> lock(guard_);
            auto found = numbers_.find(name);
            if (found != numbers_.end())
                return found->second;
        }
        std::lock_guard<std::mutex> lock(guard_);
        int number = static_cast<int>(names_.size());
        names_.push_back(name);
        numbers_[name] = number;
        return number;
    }

    size_t names() const { return names_.size(); }

  private:
    std::mutex guard_;
    std::unordered_map<std::string, int> numbers_;
    std::vector<std::string> names_;
};

TEST_CASE("two numbers")
{
    Stock stock;
    CHECK(stock.number("nail") == 0);
    CHECK(stock.number("screw") == 1);
}

TEST_CASE("one number")
{
    Stock stock;
    std::thread first([&] { stock.number("nail"); });
    std::thread second([&] { stock.number("nail"); });
    first.join();
    second.join();
    CHECK(stock.names() == 1); // the check
}
