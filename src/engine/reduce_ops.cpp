// Reduce ops. Operands behind pointers are reduced where they lie. Others come here tile by tile, into a
// small stock of buffers that all ops share, so that a reduction of any size needs no more memory than one of
// a tile; an op that finds the stock empty waits for its turn. What holds a tile waits for host memory only,
// never for a peer, so its turn comes. A long reduction gives the loop back after every tile.
#include "engine/impl.h"
#include "engine/kernels.h"

namespace offpath::engine {

using schedule::Op;
using schedule::OpId;

void Engine::Impl::start_reduce(Instance& instance, OpId id) {
    const Op& op = instance.plan->schedule().ops()[id];
    const Location src = locate(instance, op.src), dst = locate(instance, op.dst);
    if (op.bytes <= tile_bytes && (op.bytes == 0 || (src.pointer != nullptr && dst.pointer != nullptr))) {
        const Status status = reduce(op.type, op.reduction, src.pointer, dst.pointer, op.bytes);
        if (is_error(status)) return fail(instance, status, true);
        counters.bytes_reduced += op.bytes;
        return op_done(instance, id);
    }
    ReducePass* pass = passes.take();
    pass->function = [](Completion* completion, Status status) {
        auto* done = static_cast<ReducePass*>(completion);
        done->engine->tile_moved(*done, status);
    };
    pass->engine = this;
    pass->instance = &instance;
    pass->op = id;
    instance.runs[id].pass = pass;
    ++instance.holds;
    if (!take_turn(*pass)) waiting_passes.push_back(pass);
}

// One tile of each op that can go on.
bool Engine::Impl::pump_passes() {
    bool moved = false;
    for (std::size_t n = ready_passes.size(); n > 0; --n) {
        ReducePass* pass = ready_passes.front();
        ready_passes.pop_front();
        if (!take_turn(*pass)) waiting_passes.push_back(pass);
        moved = true;
    }
    for (std::size_t n = waiting_passes.size(); n > 0 && tiles_for(*waiting_passes.front()); --n) {
        ReducePass* pass = waiting_passes.front();
        waiting_passes.pop_front();
        take_turn(*pass);
        moved = true;
    }
    return moved;
}

bool Engine::Impl::tiles_for(const ReducePass& pass) const {
    if (pass.dead || pass.stage != ReducePass::Stage::idle) return true;
    const Op& op = pass.instance->plan->schedule().ops()[pass.op];
    const std::size_t needed = (locate(*pass.instance, op.src).pointer == nullptr) +
                               (locate(*pass.instance, op.dst).pointer == nullptr);
    return tiles.size() >= needed;
}

// Goes on until the host's memory has to be waited for, or a tile is done. False: there is no buffer for it.
bool Engine::Impl::take_turn(ReducePass& pass) {
    if (pass.dead || is_error(pass.status)) {
        end_pass(pass);
        return true;
    }
    if (!tiles_for(pass)) return false;
    Instance& instance = *pass.instance;
    const Op& op = instance.plan->schedule().ops()[pass.op];
    const Location src = locate(instance, op.src).at(pass.offset),
                   dst = locate(instance, op.dst).at(pass.offset);
    const std::size_t bytes = std::min<std::uint64_t>(tile_bytes, op.bytes - pass.offset);
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
            tile = tiles.back();
            tiles.pop_back();
            move([&] { return from.read(tile, bytes, &pass); });
        };
        load(src, pass.src_tile);
        load(dst, pass.dst_tile);
        if (pass.moving > 0) return true;
        if (is_error(pass.status)) return take_turn(pass);
    }
    if (pass.stage == Stage::loading) {
        const Status status =
            reduce(op.type, op.reduction, pass.src_tile != nullptr ? pass.src_tile : src.pointer,
                   pass.dst_tile != nullptr ? pass.dst_tile : dst.pointer, bytes);
        counters.bytes_reduced += bytes;
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
        ready_passes.push_back(&pass);
    return true;
}

void Engine::Impl::tile_moved(ReducePass& pass, Status status) {
    if (closed) return;
    settle(pass, status);
    if (pass.moving == 0) ready_passes.push_back(&pass);
}

void Engine::Impl::settle(ReducePass& pass, Status status) {
    --pass.moving;
    --pass.instance->team->session->pieces;
    if (is_error(status) && pass.status == Status::ok) pass.status = status;
}

void Engine::Impl::give_tiles_back(ReducePass& pass) {
    for (std::byte** tile : {&pass.src_tile, &pass.dst_tile}) {
        if (*tile != nullptr) tiles.push_back(*tile);
        *tile = nullptr;
    }
}

void Engine::Impl::end_pass(ReducePass& pass) {
    Instance& instance = *pass.instance;
    const OpId op = pass.op;
    const Status status = pass.status;
    const bool dead = pass.dead;
    give_tiles_back(pass);
    --instance.holds;
    if (!dead) instance.runs[op].pass = nullptr;
    passes.give_back(&pass);
    if (dead) return maybe_finish(instance);
    if (is_error(status)) return fail(instance, status, true);
    op_done(instance, op);
}

// It is in one of the queues, or comes back when its memory has answered.
void Engine::Impl::kill(ReducePass* pass) {
    pass->dead = true;
}

}  // namespace offpath::engine
