// PipeCopy: copies to memory that may not be there, through a pipe: the kernel says so, no signal does.
// Threads: one.
#pragma once

#include "base/status.h"

#include <cstddef>

namespace offpath::transport::tcp {

class PipeCopy {
  public:
    PipeCopy() = default;
    ~PipeCopy();
    PipeCopy(const PipeCopy&) = delete;
    PipeCopy& operator=(const PipeCopy&) = delete;

    // access: part of it is not there; system: no pipe.
    Status copy(void* to, const void* from, std::size_t bytes);

  private:
    int ends_[2] = {-1, -1};
};

}  // namespace offpath::transport::tcp
