// A mutex as Qt 6 has it: taken and given back inline while nobody waits for it, and by the library otherwise.
#ifndef CORE_H
#define CORE_H

#include <atomic>
#include <cassert>

class QMutexPrivate;

template <typename T> class QBasicAtomicPointer {
public:
    std::atomic<T *> _q_value{nullptr};
    T *loadRelaxed() const noexcept { return _q_value.load(std::memory_order_relaxed); }
    bool testAndSetAcquire(T *expected, T *value) noexcept
    {
        return _q_value.compare_exchange_strong(expected, value, std::memory_order_acquire);
    }
    bool testAndSetRelease(T *expected, T *value) noexcept
    {
        return _q_value.compare_exchange_strong(expected, value, std::memory_order_release);
    }
};

class QBasicMutex {
public:
    constexpr QBasicMutex() = default;
    void lock() noexcept
    {
        if (!fastTryLock())
            lockInternal();
    }
    void unlock() noexcept
    {
        assert(d_ptr.loadRelaxed());
        if (!fastTryUnlock())
            unlockInternal();
    }
    bool tryLock() noexcept { return fastTryLock(); }

protected:
    bool fastTryLock() noexcept { return d_ptr.testAndSetAcquire(nullptr, held()); }
    bool fastTryUnlock() noexcept { return d_ptr.testAndSetRelease(held(), nullptr); }
    static QMutexPrivate *held() { return reinterpret_cast<QMutexPrivate *>(1ul); }
    void lockInternal() noexcept;
    bool lockInternal(int timeout) noexcept;
    void unlockInternal() noexcept;
    void destroyInternal(QMutexPrivate *d);
    QBasicAtomicPointer<QMutexPrivate> d_ptr;
};

class QMutex : public QBasicMutex {
public:
    constexpr QMutex() = default;
    ~QMutex()
    {
        if (QMutexPrivate *d = d_ptr.loadRelaxed())
            destroyInternal(d);
    }
    using QBasicMutex::tryLock;
    bool tryLock(int timeout) noexcept { return fastTryLock() || lockInternal(timeout); }
};

#endif
