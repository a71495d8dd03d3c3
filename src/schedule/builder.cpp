#include "schedule/builder.h"

namespace offpath::schedule {

OpId Builder::copy(BufferRef src, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::copy, .src = src, .dst = dst, .bytes = bytes});
}

OpId Builder::put(std::uint32_t peer, BufferRef src, BufferRef remote, std::uint64_t bytes) {
    return add({.kind = OpKind::put, .peer = peer, .src = src, .dst = remote, .bytes = bytes});
}

OpId Builder::get(std::uint32_t peer, BufferRef remote, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::get, .peer = peer, .src = remote, .dst = dst, .bytes = bytes});
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

OpId Builder::compute(std::uint64_t kernel, BufferRef src, BufferRef dst, std::uint64_t bytes) {
    return add({.kind = OpKind::compute, .tag = kernel, .src = src, .dst = dst, .bytes = bytes});
}

Schedule Builder::finish() {
    return Schedule(rank_, team_size_, std::move(slots_), std::move(ops_), std::move(edges_));
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
