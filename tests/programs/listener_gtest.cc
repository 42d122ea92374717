// A widget that is closed while another thread publishes: it hears of an event afterwards.
#include <gtest/gtest.h>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>
#include <atomic>

class EventBus {
 public:
  using Handler = std::function<void(int)>;
  int subscribe(Handler h) { std::lock_guard<std::mutex> g(m_); handlers_[++last_] = std::move(h); return last_; }
  void unsubscribe(int id) { std::lock_guard<std::mutex> g(m_); handlers_.erase(id); }
  void publish(int event) {
    std::vector<Handler> copy;
    { std::lock_guard<std::mutex> g(m_); for (auto &p : handlers_) copy.push_back(p.second); }
    for (auto &h : copy) h(event);
  }
 private:
  std::mutex m_;
  std::map<int, Handler> handlers_;
  int last_ = 0;
};

class Widget {
 public:
  explicit Widget(EventBus &bus) : bus_(bus) { id_ = bus_.subscribe([this](int e) { on_event(e); }); }
  void close() { bus_.unsubscribe(id_); open_ = false; }
  int late() const { return late_; }
 private:
  void on_event(int) { if (!open_) late_++; else events_++; }
  EventBus &bus_;
  int id_;
  std::atomic<bool> open_{true};
  std::atomic<int> events_{0}, late_{0};
};

TEST(EventBus, SingleThreaded) {
  EventBus bus; Widget w(bus);
  bus.publish(1); w.close(); bus.publish(2);
  EXPECT_EQ(w.late(), 0);
}

TEST(EventBus, NoEventsAfterClose) {
  EventBus bus; Widget w(bus);
  std::thread publisher([&] { for (int i = 0; i < 4; i++) bus.publish(i); });
  w.close();
  publisher.join();
  EXPECT_EQ(w.late(), 0); // the check
}
