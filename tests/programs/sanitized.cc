// A check of UndefinedBehaviorSanitizer finds an index that two sections make, and its library ends the program. Objects with
// virtual functions are used by two threads.
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};

struct Square : Shape {
    int side;
    explicit Square(int side) : side(side) {}
    int area() const override { return side * side; }
};

std::mutex lock;
std::vector<std::unique_ptr<Shape>> shapes;
int last = -1;
int table[2] = {1, 2};

void add() {
    for (int i = 0; i < 4; i++) {
        {
            std::lock_guard<std::mutex> guard(lock);
            shapes.push_back(std::make_unique<Square>(i));
        }
        std::lock_guard<std::mutex> guard(lock);
        last++;
    }
}

void look() {
    int sum = 0;
    for (int i = 0; i < 8; i++) {
        std::lock_guard<std::mutex> guard(lock);
        int size = static_cast<int>(shapes.size());
        sum += table[last - size + 1];
        for (auto &shape : shapes)
            sum += shape->area();
    }
    printf("%d\n", sum);
}

int main() {
    std::thread adds(add), looks(look);
    adds.join();
    looks.join();
}
