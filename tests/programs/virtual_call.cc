/* A base class whose constructor starts the thread that calls a virtual function: until the derived
 * class's constructor has set the object's table of functions, the function is pure. */
#include <thread>

class Service
{
public:
    Service() : thread(&Service::run, this) {}
    virtual ~Service() = default;
    void join() { thread.join(); }

protected:
    virtual int work() = 0;

private:
    void run() { done = work(); }
    int done = 0;
    std::thread thread;
};

class Ticker : public Service
{
public:
    Ticker() : step(1) {}

protected:
    int work() override { return step; }

private:
    int step;
};

int main()
{
    Ticker ticker;
    ticker.join();
    return 0;
}
