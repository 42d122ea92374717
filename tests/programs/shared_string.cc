// Two threads append to a string without a lock: the library reads its length and writes it in one call.
#include <cassert>
#include <string>
#include <thread>

struct Page {
    std::string text;
    void add(const char *word) { text += word; }
};

int main()
{
    Page page;
    page.text.reserve(100);
    auto fill = [&page](const char *word) {
        for (int i = 0; i < 5; i++)
            page.add(word);
    };
    std::thread one(fill, "hello "), other(fill, "world ");
    one.join();
    other.join();
    assert(page.text.size() == 60);
}
