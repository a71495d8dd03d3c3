#include "node_peers.h"

#include "base/log.h"

#include <array>
#include <fstream>
#include <string>

#include <unistd.h>

namespace offpath::shmem {

namespace {

std::byte* map_of(const Card& card, const Card::OfSegment& segment) {
    MemoryFile file;
    if (segment.bytes == 0 || segment.fd < 0) return nullptr;
    if (!MemoryFile::open_of(card.pid, segment.fd, segment.file, segment.bytes, file)) return nullptr;
    return file.map(segment.bytes);
}

}  // namespace

std::uint64_t this_host() {
    std::array<char, 256> text{};
    gethostname(text.data(), text.size() - 1);
    std::string names = text.data();
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    names += "|" + boot + "|";
    const auto length = readlink("/proc/self/ns/pid", text.data(), text.size() - 1);
    if (length > 0) names.append(text.data(), static_cast<std::size_t>(length));
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same in every process
    for (const char c : names)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

void open_peers(std::span<const Card> cards, bool map) {
    const Card& own = cards[static_cast<std::size_t>(world.pe)];
    world.peers.assign(cards.size(), {});
    int refused = 0;
    for (std::size_t pe = 0; pe < cards.size(); ++pe) {
        world.peers[pe].process = cards[pe].host == own.host ? cards[pe].pid : 0;
        for (std::size_t id = 0; id < segment_count; ++id) {
            const Card::OfSegment& card = cards[pe].segments[id];
            PeerSegment& segment = world.peers[pe].segments[id];
            segment.address = card.address;
            segment.shared = card.shared != 0;
            if (world.segments[id].bytes == 0) continue;
            if (&cards[pe] == &own) {
                segment.mapped = world.segments[id].begin;
            } else if (map && cards[pe].host == own.host) {
                segment.mapped = map_of(cards[pe], card);
                if (segment.mapped == nullptr && card.fd >= 0) ++refused;
            }
            segment.atomics_here = segment.mapped != nullptr && segment.shared;
        }
    }
    if (refused > 0)
        log::info("PE {} cannot map {} segments of PEs of its node: the device moves what goes there",
                  world.pe, refused);
}

void close_peers() {
    for (std::size_t pe = 0; pe < world.peers.size(); ++pe) {
        if (pe == static_cast<std::size_t>(world.pe)) continue;
        for (std::size_t id = 0; id < segment_count; ++id) {
            std::byte* const mapped = world.peers[pe].segments[id].mapped;
            if (mapped != nullptr) unmap(mapped, world.segments[id].bytes);
        }
    }
    world.peers.clear();
}

}  // namespace offpath::shmem
