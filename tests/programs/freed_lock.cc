// A thread asks for the mutex of an object that another one has deleted: what the allocator has put there says that the mutex is
// taken, and nobody gives it back.
#include <mutex>
#include <thread>
#include <unistd.h>

struct Mailbox {
    std::mutex lock;
    int letters[28] = {};
    void put() {
        std::lock_guard<std::mutex> guard(lock);
        letters[0] += 1;
    }
};

std::mutex table;
Mailbox *mailbox;

Mailbox *find() {
    std::lock_guard<std::mutex> guard(table);
    return mailbox;
}

void sender(int microseconds) {
    Mailbox *found = find();
    usleep(microseconds);
    if (found)
        found->put();
}

void close_mailbox() {
    Mailbox *gone;
    {
        std::lock_guard<std::mutex> guard(table);
        gone = mailbox;
        mailbox = nullptr;
    }
    delete gone;
}

int main() {
    mailbox = new Mailbox;
    std::thread sends(sender, 200000);
    std::thread closes([] {
        usleep(50000);
        close_mailbox();
    });
    closes.join();
    sends.join();
}
