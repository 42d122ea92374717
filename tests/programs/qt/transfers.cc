// Two transfers take the accounts' mutexes, each its own account's first. A third thread only looks whether one is free.
#include "core.h"
#include <thread>

struct Account {
    QMutex mutex;
    long balance = 100;
};

static Account savings, checking;

static void transfer(Account &from, Account &to, long amount)
{
    from.mutex.lock();
    to.mutex.lock();
    from.balance -= amount;
    to.balance += amount;
    to.mutex.unlock();
    from.mutex.unlock();
}

static void look(Account &account)
{
    if (account.mutex.tryLock()) {
        account.balance++;
        account.mutex.unlock();
    }
    if (account.mutex.tryLock(1)) {
        account.balance--;
        account.mutex.unlock();
    }
}

int main()
{
    std::thread there([] { transfer(savings, checking, 10); });
    std::thread back([] { transfer(checking, savings, 20); });
    std::thread observer([] { look(savings); });
    there.join();
    back.join();
    observer.join();
}
