// JointHelp: the program's side of copies on which it and the target host work (target/joint_copy.h). It
// takes pieces and copies them between its own memory and the host's. Ownership: borrows the line. Threads:
// one at a time.
#pragma once

#include "memory/cma.h"
#include "target/line.h"
#include "target/records.h"

#include <cstdint>

namespace offpath::target {

// A copy that this process has asked for.
struct ExpectedCopy {
    enum class Way : std::uint8_t { to_host, from_host };
    Way way = Way::from_host;
    std::byte* here = nullptr;
    std::uint64_t there = 0, bytes = 0;
};

class JointHelp {
  public:
    explicit JointHelp(Line& line);
    // Works on the copy until no piece is left, or something else has arrived on the line. Does nothing if
    // this process cannot reach the host's memory.
    void work(const Join& join, const ExpectedCopy& copy);

  private:
    bool knows_host(const Join& join);

    Line& line_;
    JointArea* const area_;  // null: there are no such copies
    std::uint64_t token_ = 0;
    memory::Cma host_;
    std::uint64_t host_pid_ = 0;  // 0: not known yet
    bool works_;
};

}  // namespace offpath::target
