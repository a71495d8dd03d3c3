// DeviceTexts: prints what kernels of this process print on its device, each line with the device's name in
// front, and logs why a kernel failed. A thread does so, because standard output may block for as long as
// somebody does not read it. The last failure is kept.
//
// Ownership: the line. Threads: any.
#pragma once

#include "control/messages.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace offpath::client {

class DeviceTexts {
  public:
    // Tells the daemon how many texts have been printed so far.
    using Taken = std::function<void(std::uint64_t count)>;

    // Throws std::system_error.
    DeviceTexts(std::string device, Taken taken);
    // Prints what is left.
    ~DeviceTexts();
    DeviceTexts(const DeviceTexts&) = delete;
    DeviceTexts& operator=(const DeviceTexts&) = delete;

    // False: more than the protocol allows.
    bool take(control::KernelText text);
    // Returns when everything that was taken has been printed.
    void wait_printed();
    // Why the last kernel failed, of those that did; empty: none has.
    std::string last_failure() const;

  private:
    void run();
    void print(const control::KernelText& text);

    const std::string device_;
    const Taken taken_;
    mutable std::mutex texts_mutex_;
    std::condition_variable changed_;
    std::deque<control::KernelText> waiting_;
    std::string last_failure_;
    std::string last_logged_;  // of the thread
    bool printing_ = false, stop_ = false;
    std::thread printer_;
};

}  // namespace offpath::client
