#include "schedule/builder.h"

namespace offpath::schedule {

OpId Builder::copy(BufferRef src, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::copy, .src = src, .dst = dst, .bytes = bytes});
}

OpId Builder::send(std::uint32_t peer, std::uint64_t tag, BufferRef src, std::uint64_t bytes) {
    return add({.kind = OpKind::send, .peer = peer, .tag = tag, .src = src, .bytes = bytes});
}

OpId Builder::recv(std::uint32_t peer, std::uint64_t tag, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::recv, .peer = peer, .tag = tag, .dst = dst, .bytes = bytes});
}

OpId Builder::reduce(DataType type, Reduction reduction, BufferRef src, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::reduce,
                .type = type,
                .reduction = reduction,
                .src = src,
                .dst = dst,
                .bytes = bytes});
}

OpId Builder::signal(std::uint32_t peer, std::uint64_t signal) {
    return add({.kind = OpKind::signal, .peer = peer, .tag = signal});
}

OpId Builder::wait(std::uint64_t signal, std::uint64_t count) {
    return add({.kind = OpKind::wait, .tag = signal, .bytes = count});
}

OpId Builder::compute(KernelCall call) {
    calls_.push_back(std::move(call));
    return add({.kind = OpKind::compute, .tag = calls_.size() - 1});
}

Schedule Builder::finish() {
    return Schedule(rank_, team_size_, std::move(slots_), std::move(ops_), std::move(edges_),
                    std::move(calls_));
}

std::uint32_t Builder::add_slot(SlotKind kind, std::uint64_t bytes) {
    slots_.push_back({kind, bytes});
    return static_cast<std::uint32_t>(slots_.size() - 1);
}

OpId Builder::add(Op op) {
    ops_.push_back(op);
    return static_cast<OpId>(ops_.size() - 1);
}

}  // namespace offpath::schedule
