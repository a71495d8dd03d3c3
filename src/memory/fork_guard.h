// ForkGuard: tells with one load whether the process is still the one that made the object. A forked child
// has the parent's objects, but neither its threads nor its sessions. Threads: any.
#pragma once

#include <cstdint>

namespace offpath::memory {

class ForkGuard {
  public:
    ForkGuard();
    // True in a child that was forked after the guard was made.
    bool in_child() const;
    // How many forks this process has taken part in since the first guard was made.
    static std::uint64_t forks();

  private:
    std::uint64_t generation_;
};

}  // namespace offpath::memory
