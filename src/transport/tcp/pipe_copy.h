// PipeCopy: copies from or to memory that may not be mapped. The copy goes through a pipe, so the kernel
// returns an error where a direct copy would raise a signal. Threads: one.
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

    // access: part of the memory is not mapped. system: no pipe could be made.
    Status copy(void* to, const void* from, std::size_t bytes);

  private:
    int ends_[2] = {-1, -1};
};

}  // namespace offpath::transport::tcp
