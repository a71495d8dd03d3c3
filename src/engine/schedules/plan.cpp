#include "engine/schedules/plan.h"

#include "engine/schedules/instance.h"

namespace offpath::engine {

using schedule::OpId;
using schedule::OpKind;

Plan::Plan(schedule::Schedule schedule) : schedule_(std::move(schedule)) {
    const auto ops = schedule_.ops();
    for (OpId op = 0; op < ops.size(); ++op) {
        if (ops[op].kind == OpKind::send || ops[op].kind == OpKind::recv)
            exchange_.emplace(Key{ops[op].tag, ops[op].peer, ops[op].kind}, op);
    }
    std::vector<bool> received_into(schedule_.slots().size());
    for (const schedule::Op& op : ops)
        if (op.kind == OpKind::recv) received_into[op.dst.slot] = true;
    for (const schedule::Op& op : ops) {
        const bool forwards = op.kind == OpKind::send && received_into[op.src.slot];
        confirms_ = confirms_ && !forwards && op.kind != OpKind::reduce && op.kind != OpKind::compute;
    }
    shared_copy_ = schedule_.shared_copy();
    for (const schedule::Slot& slot : schedule_.slots())
        user_slots_ += slot.kind == schedule::SlotKind::user;
}

Plan::~Plan() = default;

OpId Plan::find_recv(std::uint32_t peer, std::uint64_t tag) const {
    auto it = exchange_.find({tag, peer, OpKind::recv});
    return it == exchange_.end() ? npos : it->second;
}

OpId Plan::find_send(std::uint32_t peer, std::uint64_t tag) const {
    auto it = exchange_.find({tag, peer, OpKind::send});
    return it == exchange_.end() ? npos : it->second;
}

std::unique_ptr<Instance> Plan::take() const {
    if (stock_.empty()) return std::make_unique<Instance>();
    std::unique_ptr<Instance> instance = std::move(stock_.back());
    stock_.pop_back();
    return instance;
}

void Plan::give_back(std::unique_ptr<Instance> instance) const {
    stock_.push_back(std::move(instance));
}

}  // namespace offpath::engine
