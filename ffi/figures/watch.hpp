// The time that a matrix may take.
#ifndef FIGURES_WATCH_HPP
#define FIGURES_WATCH_HPP

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "json.hpp"

// The status of a process that printed its line, of a matrix with which something went wrong.
constexpr int PRINTED_FAILURE = 3;

// Prints the line, and ends the process, where it is not done in time.
class Watch {
 public:
  Watch(Line &line, double seconds) {
    if (seconds <= 0) return;
    thread_ = std::thread([this, &line, seconds] {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto end = std::chrono::duration<double>(seconds);
      if (is_done_.wait_for(lock, end, [this] { return done_; })) return;
      line.put("cut_after_s", seconds);
      line.print();
      std::_Exit(PRINTED_FAILURE);
    });
  }
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;
  ~Watch() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    is_done_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_done_;
  bool done_ = false;
  std::thread thread_;
};

#endif
