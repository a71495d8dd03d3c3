// ReduceOps: executes reduce ops. Operands behind pointers are reduced in place. Others are copied here tile
// by tile, into a small stock of buffers that all ops share. A reduction of any size therefore needs no more
// memory than one of a tile. An op that finds the stock empty waits for its turn. An op that holds a tile
// waits for host memory only, never for a peer, so each turn comes. A long reduction returns to the loop
// after every tile.
//
// Ownership: owns the tiles and the passes. Threads: the engine's.
#pragma once

#include "engine/schedules/instance.h"
#include "engine/teams/tenant.h"

#include <deque>
#include <memory>
#include <vector>

namespace offpath::engine {

class ReduceOps {
  public:
    ReduceOps(Schedules& home, Core& core);

    void start(Instance& instance, schedule::OpId op);
    // Advances each op that can go on by one tile.
    bool pump();
    bool has_work() const { return !ready_passes_.empty(); }
    // The pass is in one of the queues, or returns when its memory has answered.
    void kill(ReducePass* pass) { pass->dead = true; }
    void trim() { passes_.release_if_unused(); }

  private:
    bool take_turn(ReducePass& pass);
    bool tiles_for(const ReducePass& pass) const;
    void tile_moved(ReducePass& pass, Status status);
    void settle(ReducePass& pass, Status status);
    void give_tiles_back(ReducePass& pass);
    void end_pass(ReducePass& pass);

    Schedules& home_;
    Core& core_;
    Slab<ReducePass> passes_;
    std::deque<ReducePass*> ready_passes_;    // hold a tile, or can take one
    std::deque<ReducePass*> waiting_passes_;  // waiting for tiles
    const std::size_t tile_bytes_;
    std::unique_ptr<std::byte[], void (*)(std::byte*)> arena_;
    std::vector<std::byte*> tiles_;
};

}  // namespace offpath::engine
