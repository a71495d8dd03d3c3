#include "target/program/joint_help.h"

#include "base/random_numbers.h"

#include <string>

namespace offpath::target {

JointHelp::JointHelp(Line& line) : line_(line), area_(line.joint()), works_(area_ != nullptr) {
    if (area_ == nullptr) return;
    RandomNumbers random;
    token_ = random.next();
    area_->token.store(token_, std::memory_order_release);
}

// The host may run faulty code of the program, and its number may be another process's here. So its process
// is the one that has the token where it says.
bool JointHelp::knows_host(const Join& join) {
    if (!works_ || join.place >= JointArea::places) return false;
    if (host_pid_ != 0) return host_pid_ == join.pid;
    const auto pid = static_cast<pid_t>(join.pid);
    std::string ignored;
    works_ = memory::cma_probe(pid, join.token, token_, ignored) == Status::ok &&
             memory::Cma::open(pid, host_) == Status::ok;
    if (works_) host_pid_ = join.pid;
    return works_;
}

void JointHelp::work(const Join& join, const ExpectedCopy& copy) {
    if (!knows_host(join)) return;
    JointCopy& joint = area_->copies[join.place];
    JointCopy::Piece piece;
    while (!line_.readable() && joint.take(join.generation, copy.bytes, piece)) {
        std::byte* const here = copy.here + piece.offset;
        const std::uint64_t there = copy.there + piece.offset;
        const Status status = copy.way == ExpectedCopy::Way::to_host ? host_.write(there, here, piece.bytes)
                                                                     : host_.read(there, here, piece.bytes);
        if (status == Status::ok)
            joint.copied(piece.bytes);
        else
            joint.failed(piece.bytes);
    }
}

}  // namespace offpath::target
