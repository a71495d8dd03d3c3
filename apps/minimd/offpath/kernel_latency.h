// How much time passes between a host and its device before kernels begin and after they end.
#pragma once

#include <chrono>

namespace minimd {

class KernelLatency {
  public:
    using Clock = std::chrono::steady_clock;

    // The host has started kernels.
    void started() { started_ = Clock::now(); }
    // The host asks for the end of the kernels. `waits` tells that they have not finished yet.
    void asked(bool waits);
    // The host has seen their end. `began` and `ended` are times by the device's clock.
    void done(double began, double ended);

    double seconds() const { return latency_; }

  private:
    Clock::time_point started_, asked_;
    bool waits_ = false;
    double latency_ = 0.0, way_back_ = 0.0;
};

}  // namespace minimd
