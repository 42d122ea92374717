// Global constructors and destructors, thread_local with destructors, statics in functions.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> alive;
static std::atomic<int> ended;

struct Global {
    std::string name;
    explicit Global(const char *name) : name(name) { alive++; }
    ~Global() {
        alive--;
        printf("end of %s, %d alive\n", name.c_str(), alive.load());
    }
};

static Global first("first");
static Global second("second with a name that needs the heap");
static std::vector<int> table = [] {
    std::vector<int> made;
    for (int i = 0; i < 10; i++) {
        made.push_back(i * i);
    }
    return made;
}();

struct PerThread {
    std::vector<int> seen;
    int sum = 0;
    ~PerThread() { ended += sum; }
};

static thread_local PerThread mine;
static thread_local int plain = 5;
static __thread long old_style;

static Global &once() {
    static Global global("once");
    return global;
}

__attribute__((constructor)) static void before() { alive += 10; }
__attribute__((destructor)) static void after() { printf("after: %d\n", alive.load()); }

static void at_exit() { printf("at exit: %d\n", ended.load()); }

static void work(int id) {
    for (int i = 0; i < 5; i++) {
        mine.seen.push_back(table[(i + id) % 10]);
        mine.sum += mine.seen.back();
        plain += i;
        old_style -= plain;
    }
    mine.sum += plain + static_cast<int>(old_style) + static_cast<int>(once().name.size());
}

int main() {
    atexit(at_exit);
    std::thread one(work, 1), two(work, 2);
    one.join();
    two.join();
    work(0);
    printf("%d %d %d\n", ended.load(), mine.sum, alive.load());
    return 0;
}
