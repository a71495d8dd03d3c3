// EndedPeers: what an engine keeps of the peers of jobs that have ended here, so that it can still answer
// their proxies.
//
// A rank may leave hours before the others, so peers are not forgotten by age. At least the `least` youngest
// ones are known. There are two tables. Once the young one is full, it becomes the old one, and the
// table that was old begins anew.
//
// The memory is taken for the first peer, and never changes.
//
// Ownership: borrows ways, which count the records that refer to them. Threads: the engine's.
#pragma once

#include "engine/mover/peer.h"

#include <algorithm>
#include <array>
#include <vector>

namespace offpath::engine {

class EndedPeers {
  public:
    struct Record {
        std::uint64_t pass_here = 0;  // 0: the slot is free
        std::uint64_t pass_there = 0;
        Way* way = nullptr;  // null: no rank had announced the proxy
        bool lost = false;
    };

    explicit EndedPeers(std::size_t least) : least_(std::max<std::size_t>(least, 1)) {}

    void remember(const Peer& peer);
    // Null: unknown or forgotten. The pointer is valid until the next call of remember().
    Record* find(std::uint64_t pass_here);
    // Changes the way to the record's proxy.
    static void lead(Record& record, Way* way);

  private:
    // Passes are random numbers, so their low bits say where a search begins. A table is at most half full.
    struct Table {
        Record& slot_of(std::uint64_t pass_here);
        void clear();

        std::vector<Record> slots;
        std::size_t used = 0;
    };
    const std::size_t least_;
    std::array<Table, 2> tables_;
    std::size_t young_ = 0;
};

}  // namespace offpath::engine
