// Clock: the engine and its helpers read time through this interface. Tests and the simulator inject a
// virtual clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace offpath {

class Clock {
  public:
    virtual ~Clock() = default;
    // Nanoseconds since an arbitrary start; never decreases. Thread-safe.
    virtual std::uint64_t now_ns() const = 0;
};

class SteadyClock final : public Clock {
  public:
    std::uint64_t now_ns() const override {
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::steady_clock::now().time_since_epoch())
                                              .count());
    }
};

// Reads the steady clock.
inline std::uint64_t now_ns() {
    return SteadyClock().now_ns();
}

}  // namespace offpath
