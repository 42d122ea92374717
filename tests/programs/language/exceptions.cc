// Exceptions through several frames, uninstrumented ones among them, in several threads.
//~ GAP: memory that uninstrumented code wrote
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static int destroyed;
static int total;

struct Guard {
    int weight;
    explicit Guard(int weight) : weight(weight) {}
    ~Guard() {
        std::lock_guard<std::mutex> hold(lock);
        destroyed += weight;
    }
};

struct Odd : std::runtime_error {
    int value;
    explicit Odd(int value) : std::runtime_error("odd " + std::to_string(value)), value(value) {}
};

__attribute__((noinline)) static int deep(int depth, int value) {
    Guard guard(1);
    if (depth == 0) {
        if (value % 2 != 0) {
            throw Odd(value);
        }
        if (value % 3 == 0) {
            throw std::string("three");
        }
        return value;
    }
    return deep(depth - 1, value) + 1;
}

static int caught(int value) {
    try {
        return deep(4, value);
    } catch (const Odd &odd) {
        return -odd.value;
    } catch (const std::string &text) {
        return static_cast<int>(text.size());
    }
}

// The comparison throws through qsort, which libc has unwind tables for.
static int compare(const void *left, const void *right) {
    int a = *static_cast<const int *>(left);
    int b = *static_cast<const int *>(right);
    if (a == 13 || b == 13) {
        throw Odd(13);
    }
    return (a > b) - (a < b);
}

static int sorted() {
    int values[] = {5, 3, 13, 1, 7};
    try {
        qsort(values, 5, sizeof values[0], compare);
    } catch (const Odd &odd) {
        return odd.value;
    }
    return 0;
}

static int sorted_by_function() {
    std::vector<int> values = {9, 4, 13, 2, 8, 6};
    std::function<bool(int, int)> less = [](int a, int b) {
        if (a == 13 || b == 13) {
            throw std::string("thirteen");
        }
        return a < b;
    };
    try {
        std::sort(values.begin(), values.end(), less);
    } catch (const std::string &text) {
        return static_cast<int>(text.size());
    }
    return 0;
}

static int rethrown() {
    try {
        try {
            deep(2, 7);
        } catch (Odd &odd) {
            odd.value = 70;
            throw;
        }
    } catch (const Odd &odd) {
        return odd.value;
    }
    return 0;
}

static int nested() {
    try {
        try {
            deep(1, 5);
        } catch (...) {
            std::throw_with_nested(std::logic_error("outer"));
        }
    } catch (const std::logic_error &outer) {
        try {
            std::rethrow_if_nested(outer);
        } catch (const Odd &inner) {
            return inner.value + static_cast<int>(std::string(outer.what()).size());
        }
    }
    return 0;
}

// An exception is thrown and caught while another one unwinds.
struct Noisy {
    int *seen;
    ~Noisy() {
        try {
            deep(1, 9);
        } catch (const Odd &odd) {
            *seen += odd.value;
        }
    }
};

static int during_unwinding() {
    int seen = 0;
    try {
        Noisy noisy{&seen};
        deep(1, 6);
    } catch (const std::string &) {
        seen += 100;
    }
    return seen;
}

static void body(int first, std::exception_ptr *failed) {
    try {
        for (int value = first; value < first + 6; value++) {
            int got = caught(value);
            std::lock_guard<std::mutex> hold(lock);
            total += got;
        }
        deep(3, 2 * first + 1);
    } catch (...) {
        *failed = std::current_exception();
    }
}

static int checked() noexcept {
    try {
        return deep(2, 8);
    } catch (...) {
        return -1;
    }
}

int main() {
    std::exception_ptr failed[2];
    std::thread one(body, 1, &failed[0]);
    std::thread two(body, 10, &failed[1]);
    one.join();
    two.join();
    int across = 0;
    for (auto &pointer : failed) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Odd &odd) {
            across += odd.value;
        }
    }
    printf("total %d destroyed %d across %d\n", total, destroyed, across);
    printf("%d %d %d %d %d %d\n", sorted(), sorted_by_function(), rethrown(), nested(),
           during_unwinding(), checked());
    return across == 24 ? 0 : 1;
}
