// ForkGuard: tells whether the process is still the one that made the object, with one load. After fork() the
// child has the parent's objects but neither its threads nor its sessions. Threads: any.
#pragma once

#include <cstdint>

namespace offpath::memory {

class ForkGuard {
  public:
    ForkGuard();
    // True in a child that was forked after the guard was made.
    bool in_child() const;
    // Forks that this process took part in since the first guard was made.
    static std::uint64_t forks();

  private:
    std::uint64_t generation_;
};

}  // namespace offpath::memory
