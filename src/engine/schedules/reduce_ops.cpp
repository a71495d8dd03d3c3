#include "engine/schedules/reduce_ops.h"

#include "engine/reductions/reduce.h"
#include "engine/schedules/schedules.h"
#include "trace/trace.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;

namespace {

constexpr std::size_t page = 4096;
// A tile and its counterpart stay in the second-level cache. The size of a tile is a whole number of elements
// of any type.
constexpr std::size_t most_tile_bytes = 64 << 10, least_tile_bytes = 64;

Status traced_reduce(const Op& op, const std::byte* src, std::byte* dst, std::size_t bytes) {
    const trace::Span span(trace::Kind::reduce, bytes);
    return reduce(op.type, op.reduction, src, dst, bytes);
}

}  // namespace

ReduceOps::ReduceOps(Schedules& home, Core& core)
    : home_(home),
      core_(core),
      passes_(core.random),
      tile_bytes_(std::min(core.config.chunk_bytes, most_tile_bytes) / least_tile_bytes * least_tile_bytes),
      arena_(nullptr, [](std::byte* p) { std::free(p); }) {
    const std::size_t count = std::max<std::size_t>(core.config.reduce_tiles, 2);
    const std::size_t room = (tile_bytes_ + page - 1) / page * page;
    arena_.reset(static_cast<std::byte*>(std::aligned_alloc(page, room * count)));
    if (!arena_) throw std::bad_alloc();
    for (std::size_t i = 0; i < count; ++i)
        tiles_.push_back(arena_.get() + i * room);
}

void ReduceOps::start(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    const Location src = instance.locate(op.src), dst = instance.locate(op.dst);
    if (op.bytes <= tile_bytes_ && (op.bytes == 0 || (src.pointer != nullptr && dst.pointer != nullptr))) {
        const Status status = traced_reduce(op, src.pointer, dst.pointer, op.bytes);
        if (is_error(status)) return home_.fail(instance, status, true);
        core_.counters.bytes_reduced += op.bytes;
        return home_.op_done(instance, id);
    }
    ReducePass* pass = passes_.take();
    pass->function = [](Completion* completion, Status status) {
        auto* done = static_cast<ReducePass*>(completion);
        done->home->tile_moved(*done, status);
    };
    pass->home = this;
    pass->instance = &instance;
    pass->op = id;
    instance.runs[id].pass = pass;
    ++instance.holds;
    if (!take_turn(*pass)) waiting_passes_.push_back(pass);
}

bool ReduceOps::pump() {
    bool moved = false;
    for (std::size_t n = ready_passes_.size(); n > 0; --n) {
        ReducePass* pass = ready_passes_.front();
        ready_passes_.pop_front();
        if (!take_turn(*pass)) waiting_passes_.push_back(pass);
        moved = true;
    }
    for (std::size_t n = waiting_passes_.size(); n > 0 && tiles_for(*waiting_passes_.front()); --n) {
        ReducePass* pass = waiting_passes_.front();
        waiting_passes_.pop_front();
        take_turn(*pass);
        moved = true;
    }
    return moved;
}

bool ReduceOps::tiles_for(const ReducePass& pass) const {
    if (pass.dead || pass.stage != ReducePass::Stage::idle) return true;
    const Op& op = pass.instance->plan->schedule().ops()[pass.op];
    const std::size_t needed = (pass.instance->locate(op.src).pointer == nullptr) +
                               (pass.instance->locate(op.dst).pointer == nullptr);
    return tiles_.size() >= needed;
}

// Continues until the pass must wait for host memory or a tile is done. False: no buffer is free for it.
bool ReduceOps::take_turn(ReducePass& pass) {
    if (pass.dead || is_error(pass.status)) {
        end_pass(pass);
        return true;
    }
    if (!tiles_for(pass)) return false;
    Instance& instance = *pass.instance;
    const Op& op = instance.plan->schedule().ops()[pass.op];
    const Location src = instance.locate(op.src).at(pass.offset),
                   dst = instance.locate(op.dst).at(pass.offset);
    const std::size_t bytes = std::min<std::uint64_t>(tile_bytes_, op.bytes - pass.offset);
    const auto move = [&](auto&& start) {
        ++pass.moving;
        ++instance.team->session->pieces;
        const Status status = start();
        if (status != Status::in_progress) settle(pass, status);
    };
    using Stage = ReducePass::Stage;
    if (pass.stage == Stage::idle) {
        pass.stage = Stage::loading;
        const auto load = [&](const Location& from, std::byte*& tile) {
            if (from.pointer != nullptr) return;
            tile = tiles_.back();
            tiles_.pop_back();
            move([&] { return from.read(tile, bytes, &pass); });
        };
        load(src, pass.src_tile);
        load(dst, pass.dst_tile);
        if (pass.moving > 0) return true;
        if (is_error(pass.status)) return take_turn(pass);
    }
    if (pass.stage == Stage::loading) {
        const Status status = traced_reduce(op, pass.src_tile != nullptr ? pass.src_tile : src.pointer,
                                            pass.dst_tile != nullptr ? pass.dst_tile : dst.pointer, bytes);
        core_.counters.bytes_reduced += bytes;
        pass.stage = Stage::storing;
        if (is_error(status)) {
            pass.status = status;
        } else if (pass.dst_tile != nullptr) {
            move([&] { return dst.write(pass.dst_tile, bytes, &pass); });
        }
        if (pass.moving > 0) return true;
        if (is_error(pass.status)) return take_turn(pass);
    }
    give_tiles_back(pass);
    pass.stage = Stage::idle;
    pass.offset += bytes;
    if (pass.offset == op.bytes)
        end_pass(pass);
    else
        ready_passes_.push_back(&pass);
    return true;
}

void ReduceOps::tile_moved(ReducePass& pass, Status status) {
    if (core_.peers.closed()) return;
    settle(pass, status);
    if (pass.moving == 0) ready_passes_.push_back(&pass);
}

void ReduceOps::settle(ReducePass& pass, Status status) {
    --pass.moving;
    --pass.instance->team->session->pieces;
    if (is_error(status) && pass.status == Status::ok) pass.status = status;
}

void ReduceOps::give_tiles_back(ReducePass& pass) {
    for (std::byte** tile : {&pass.src_tile, &pass.dst_tile}) {
        if (*tile != nullptr) tiles_.push_back(*tile);
        *tile = nullptr;
    }
}

void ReduceOps::end_pass(ReducePass& pass) {
    Instance& instance = *pass.instance;
    const OpId op = pass.op;
    const Status status = pass.status;
    const bool dead = pass.dead;
    give_tiles_back(pass);
    --instance.holds;
    if (!dead) instance.runs[op].pass = nullptr;
    passes_.give_back(&pass);
    if (dead) return home_.maybe_finish(instance);
    if (is_error(status)) return home_.fail(instance, status, true);
    home_.op_done(instance, op);
}

}  // namespace offpath::engine
