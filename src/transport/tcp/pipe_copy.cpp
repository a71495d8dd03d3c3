#include "transport/tcp/pipe_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace offpath::transport::tcp {
namespace {

// A pipe holds at least this much, even if its user has many pipes.
constexpr std::size_t piece_bytes = 4096;

}  // namespace

PipeCopy::~PipeCopy() {
    for (int end : ends_)
        if (end >= 0) close(end);
}

Status PipeCopy::copy(void* to, const void* from, std::size_t bytes) {
    if (ends_[0] < 0 && pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) return Status::system;
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const ssize_t in = write(ends_[1], source, std::min(bytes, piece_bytes));
        if (in < 0 && errno == EINTR) continue;
        if (in <= 0) return Status::system;
        for (ssize_t out = 0; out < in;) {
            const ssize_t got = read(ends_[0], target + out, static_cast<std::size_t>(in - out));
            if (got < 0 && errno == EINTR) continue;
            if (got > 0) {
                out += got;
                continue;
            }
            const bool not_there = got < 0 && errno == EFAULT;
            std::array<std::byte, piece_bytes> rest;
            while (read(ends_[0], rest.data(), rest.size()) > 0) {
            }
            return not_there ? Status::access : Status::system;
        }
        source += in;
        target += in;
        bytes -= static_cast<std::size_t>(in);
    }
    return Status::ok;
}

}  // namespace offpath::transport::tcp
