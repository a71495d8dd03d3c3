// FileDescriptor: owns one descriptor and closes it. Movable, not copyable. The value -1 means none. Forked
// children of a client do not keep the descriptor open (base/own_descriptors.h).
#pragma once

#include "base/own_descriptors.h"

#include <unistd.h>

#include <utility>

namespace offpath {

class FileDescriptor {
  public:
    FileDescriptor() = default;
    explicit FileDescriptor(int fd) : fd_(fd) { own_descriptors::note(fd); }
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~FileDescriptor() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() {
        own_descriptors::forget(fd_);
        return std::exchange(fd_, -1);
    }
    void reset() {
        if (fd_ < 0) return;
        own_descriptors::forget(fd_);
        ::close(std::exchange(fd_, -1));
    }

  private:
    int fd_ = -1;
};

}  // namespace offpath
