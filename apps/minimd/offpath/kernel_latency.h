// How long a device's kernels are on their way there and back, besides their own time.
#pragma once

#include <chrono>

namespace minimd {

class KernelLatency {
  public:
    using Clock = std::chrono::steady_clock;

    // The host has started kernels.
    void started() { started_ = Clock::now(); }
    // It now asks for their end, which they have not reached if `waits`.
    void asked(bool waits);
    // It has been told. By the device's clock they began and ended then.
    void done(double began, double ended);

    double seconds() const { return latency_; }

  private:
    Clock::time_point started_, asked_;
    bool waits_ = false;
    double latency_ = 0.0, way_back_ = 0.0;
};

}  // namespace minimd
