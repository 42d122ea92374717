// What a thread does that finds the mutex taken.
#include "core.h"
#include <climits>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static QMutexPrivate *waited_for() { return reinterpret_cast<QMutexPrivate *>(3ul); }

static void sleep_on(void *word, const timespec *limit)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 3, limit, nullptr, 0);
}

void QBasicMutex::lockInternal() noexcept
{
    while (d_ptr._q_value.exchange(waited_for()))
        sleep_on(&d_ptr, nullptr);
}

bool QBasicMutex::lockInternal(int timeout) noexcept
{
    timespec limit = {timeout / 1000, timeout % 1000 * 1000000l};
    if (d_ptr._q_value.exchange(waited_for()) == nullptr)
        return true;
    sleep_on(&d_ptr, &limit);
    return d_ptr._q_value.exchange(waited_for()) == nullptr;
}

void QBasicMutex::unlockInternal() noexcept
{
    d_ptr._q_value.store(nullptr);
    syscall(SYS_futex, &d_ptr, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void QBasicMutex::destroyInternal(QMutexPrivate *) { abort(); }
