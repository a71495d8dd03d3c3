// The short way: small operations on a window that go from the rank straight to the target's proxy, over a
// connection of their own (rma/direct.h), instead of through the rank's own proxy. Here is which operations
// are worth it. Pure: the client and the simulator follow the same rules.
#pragma once

#include <cstdint>

namespace offpath::ways {

// The most operations in a row that no thread waits for. The next ones go through the own proxy, which
// sends many together and costs this process less.
constexpr std::uint32_t most_in_a_row = 8;

// The most operations between two flushes that each leave at once as a message of their own. Larger numbers
// are cheaper together: small operations in a bundle on the short way, the others through the own proxy.
constexpr std::uint32_t most_in_a_batch = 4;
// The most bytes that these operations may carry or ask for, so that the sockets can hold them while the
// program computes.
constexpr std::uint64_t most_batch_bytes = 64 << 10;

// The most bytes of an operation that travels together with others.
constexpr std::uint64_t most_bundled_bytes = 1024;

// Counts the operations without a request between flushes of a window, as an estimate for the next interval.
struct Batch {
    std::uint32_t before = 0, now = 0;
    std::uint64_t bytes = 0;  // of the current ones on the short way
    void flushed() {
        if (now > 0) *this = {now, 0, 0};
    }

    // Whether operations are few enough that this one, which has been counted in `now`, leaves at once.
    bool is_few(std::uint64_t moved) const {
        return before <= most_in_a_batch && now <= most_in_a_batch && moved <= most_batch_bytes - bytes;
    }
};

}  // namespace offpath::ways
