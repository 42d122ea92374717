/* A service's configuration is a shared pointer that one thread replaces while the others copy it: a copy reads the pointer,
 * and counts itself in what that leads to only then. */
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Config {
    std::string name;
    int limit;
};

class Service {
    std::shared_ptr<const Config> config_ =
        std::make_shared<const Config>(Config{"the configuration at the beginning", 10});

public:
    void reload(int limit)
    {
        config_ = std::make_shared<const Config>(Config{"a configuration of later", limit});
    }
    bool accepts(int request)
    {
        auto config = config_;
        return request % 7 < config->limit;
    }
};

int main()
{
    Service service;
    std::vector<std::thread> threads;
    long accepted[3] = {};
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&service, &accepted, i] {
            for (int request = 0; request < 150; request++)
                accepted[i] += service.accepts(request);
        });
    threads.emplace_back([&service] {
        for (int limit = 1; limit < 60; limit++)
            service.reload(limit);
    });
    for (auto &thread : threads)
        thread.join();
    printf("%ld\n", accepted[0] + accepted[1] + accepted[2]);
}
