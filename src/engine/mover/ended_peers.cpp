// Two tables of records, of which the old one makes room.
#include "engine/mover/ended_peers.h"

namespace offpath::engine {

EndedPeers::Record& EndedPeers::Table::slot_of(std::uint64_t pass_here) {
    std::size_t at = pass_here % slots.size();
    while (slots[at].pass_here != 0 && slots[at].pass_here != pass_here)
        at = (at + 1) % slots.size();
    return slots[at];
}

void EndedPeers::Table::clear() {
    for (Record& record : slots) {
        lead(record, nullptr);
        record = {};
    }
    used = 0;
}

void EndedPeers::lead(Record& record, Way* way) {
    if (record.way != nullptr) --record.way->ended_peers;
    record.way = way;
    if (way != nullptr) ++way->ended_peers;
}

void EndedPeers::remember(const Peer& peer) {
    if (tables_[young_].slots.empty())
        for (Table& table : tables_)
            table.slots.resize(2 * least_);
    if (tables_[young_].used == least_) {
        young_ ^= 1;
        tables_[young_].clear();
    }
    Record& record = tables_[young_].slot_of(peer.pass_here);
    if (record.pass_here == 0) ++tables_[young_].used;
    record.pass_here = peer.pass_here;
    record.pass_there = peer.pass_there;
    record.lost = peer.lost;
    lead(record, peer.way);
}

EndedPeers::Record* EndedPeers::find(std::uint64_t pass_here) {
    if (tables_[young_].slots.empty()) return nullptr;
    for (const std::size_t table : {young_, young_ ^ 1}) {
        Record& record = tables_[table].slot_of(pass_here);
        if (record.pass_here == pass_here && pass_here != 0) return &record;
    }
    return nullptr;
}

}  // namespace offpath::engine
