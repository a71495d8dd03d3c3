// JointCopies: the target host's side of copies on which the program works as well (target/joint_copy.h).
// Ownership: borrows the line. Threads: any.
#pragma once

#include "base/status.h"
#include "target/line.h"
#include "target/records.h"

#include <atomic>
#include <cstdint>
#include <functional>

namespace offpath::target {

class JointCopies {
  public:
    enum class Way : std::uint8_t { from_program, to_program };
    using Copy = std::function<Status(std::uint64_t offset, std::uint64_t bytes)>;
    using Ask = std::function<void(const Join& join)>;

    explicit JointCopies(Line& line) : line_(line) {}

    // Copies `bytes` bytes by `copy`, piece by piece. If they are enough for two, it sends the program a Join
    // by `ask` first. Returns when the program has done its pieces too.
    Status run(std::uint64_t bytes, const Copy& copy, const Ask& ask);

  private:
    bool find_place(std::size_t& place);
    bool wait(const JointCopy& joint, std::uint64_t bytes);

    Line& line_;
    std::atomic<std::uint32_t> used_{0};  // a bit for each place
};

}  // namespace offpath::target
