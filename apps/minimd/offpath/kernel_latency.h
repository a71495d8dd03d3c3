// How much time passes between a host and its device before kernels begin and after they end.
#pragma once

#include <chrono>

namespace minimd {

class KernelLatency {
  public:
    using Clock = std::chrono::steady_clock;

    // The host has started kernels.
    void started(Clock::time_point now = Clock::now()) { started_ = now; }
    // The host asks for the end of the kernels. `waits` tells that they have not finished yet.
    void asked(bool waits, Clock::time_point now = Clock::now());
    // The host has seen their end. `began` and `ended` are times by the device's clock.
    void done(double began, double ended, Clock::time_point at = Clock::now());

    double seconds() const { return latency_; }

  private:
    Clock::time_point started_, asked_;
    bool waits_ = false;
    double latency_ = 0.0, way_back_ = 0.0;
};

}  // namespace minimd
