// Coroutines of C++20, resumed by another thread than the one that began them.
//~ FLAGS: -std=c++20
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#if __has_include(<coroutine>) && defined(__cpp_impl_coroutine)
#include <coroutine>
#else
// libstdc++ has no header for clang 14: the two names that the compiler needs.
namespace std {
template <typename Result, typename...> struct coroutine_traits {
    using promise_type = typename Result::promise_type;
};
template <typename Promise = void> struct coroutine_handle;
template <> struct coroutine_handle<void> {
    void *frame = nullptr;
    static coroutine_handle from_address(void *address) noexcept { return {address}; }
    void *address() const noexcept { return frame; }
    bool done() const noexcept { return __builtin_coro_done(frame); }
    void resume() const { __builtin_coro_resume(frame); }
    void destroy() const { __builtin_coro_destroy(frame); }
};
template <typename Promise> struct coroutine_handle : coroutine_handle<> {
    static coroutine_handle from_address(void *address) noexcept {
        coroutine_handle handle;
        handle.frame = address;
        return handle;
    }
    static coroutine_handle from_promise(Promise &promise) noexcept {
        return from_address(__builtin_coro_promise(&promise, alignof(Promise), true));
    }
    Promise &promise() const {
        return *static_cast<Promise *>(__builtin_coro_promise(frame, alignof(Promise), false));
    }
};
struct suspend_always {
    bool await_ready() const noexcept { return false; }
    void await_suspend(coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
};
} // namespace std
#endif

struct Generator {
    struct promise_type {
        int value = 0;
        Generator get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int next) noexcept {
            value = next;
            return {};
        }
        void return_void() noexcept {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
    bool next() {
        handle.resume();
        return !handle.done();
    }
};

static std::mutex lock;
static int total;

static Generator numbers(int from, int count) {
    for (int i = 0; i < count; i++) {
        co_yield from + i;
    }
}

static void drain(Generator generator) {
    while (generator.next()) {
        std::lock_guard<std::mutex> hold(lock);
        total += generator.handle.promise().value;
    }
    generator.handle.destroy();
}

int main() {
    Generator one = numbers(10, 5), two = numbers(100, 3);
    one.next();
    std::thread first(drain, one), second(drain, two);
    first.join();
    second.join();
    printf("%d\n", total);
    return total == 11 + 12 + 13 + 14 + 303 ? 0 : 1;
}
