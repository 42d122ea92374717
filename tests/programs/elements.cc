// Elements of containers that two threads touch, each in a line of its own.
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Item {
    int id = 0;
    int price = 0;
    int &worth() { return price; }
};

struct Shop {
    std::vector<Item> items = std::vector<Item>(3);
    std::map<std::string, int> named{{"a", 0}, {"b", 0}};
    std::map<int, Item> numbered{{1, {}}, {2, {}}};
    std::unordered_map<std::string, int> hashed{{"a", 0}, {"b", 0}};
    std::list<Item> listed{Item{}, Item{}};
    std::queue<Item> waiting{std::deque<Item>{Item{}}};
    std::unique_ptr<Item> owned = std::make_unique<Item>();
    std::shared_ptr<Item> shared = std::make_shared<Item>();
    std::string text = "a text that is too long for the string itself";
    Item &item(int i) { return items[i]; }
};

static void work(Shop &shop, int i) {
    shop.items[1].price += 1;
    shop.items.at(i).price += 1;
    shop.item(2).price += 1;
    shop.named["a"] += 1;
    shop.numbered[i].price += 1;
    shop.hashed["b"] += 1;
    shop.listed.back().price += 1;
    shop.waiting.front().price += 1;
    shop.owned->price += 1;
    shop.shared->price += 1;
    shop.items[i].worth() += 1;
    shop.text[3] = 'x';
}

int main() {
    Shop shop;
    std::thread other([&] { work(shop, 2); });
    work(shop, 2);
    other.join();
}
