// What a transport's messages take of cores, and what sockets take at once.
#include "engine/mover/wire.h"
#include "engine/onesided/headers.h"
#include "engine/schedules/headers.h"
#include "sim/machine/cluster.h"
#include "sim/machine/sim_transport.h"
#include "sim/machine/worker.h"

#include <cstring>
#include <optional>

namespace offpath::sim {

bool SimTransport::is_library_over_sockets() const {
    return worker_.kind() == Worker::Kind::library && cluster_.platform().protocol == Protocol::stream;
}

bool SimTransport::shares_memory_with(const SimTransport& other) const {
    return is_library_over_sockets() && other.is_library_over_sockets() &&
           worker_.node() == other.worker_.node();
}

namespace {

// What the engine said; `Header` is of that kind.
template <typename Header>
std::optional<Header> said(std::span<const std::byte> header, engine::Kind kind) {
    Header found;
    if (header.size() <= sizeof(engine::Stamp)) return std::nullopt;
    const auto its = header.subspan(sizeof(engine::Stamp));
    if (engine::kind_of(its) != kind || !engine::read(its, found)) return std::nullopt;
    return found;
}

}  // namespace

bool SimTransport::asks_first(std::span<const std::byte> header) {
    if (to_ask_.empty()) return false;
    const auto chunk = said<engine::Chunk>(header, engine::Kind::chunk);
    return chunk && to_ask_.erase(chunk->token) > 0;
}

void SimTransport::note_receiver(const Arrival& arrival) {
    if (!is_library_over_sockets() || shares_memory_with(*arrival.sender)) return;
    const auto header = std::span(arrival.bytes).first(arrival.header_bytes);
    const auto ready = said<engine::Ready>(header, engine::Kind::ready);
    if (ready && ready->bytes > library_eager_bytes) to_ask_.insert(ready->token);
    const auto access = said<engine::OneSidedHeader>(header, engine::Kind::one_sided);
    if (access && access->receiver != 0 && access->bytes > library_eager_bytes)
        to_ask_.insert(access->receiver);
}

bool SimTransport::is_confirmation(std::span<const std::byte> header) const {
    return is_library_over_sockets() && said<engine::Arrived>(header, engine::Kind::arrived).has_value();
}

void SimTransport::want_no_confirmation(std::vector<std::byte>& header) const {
    auto ready = said<engine::Ready>(header, engine::Kind::ready);
    if (!ready) return;
    ready->confirms = 0;
    std::memcpy(header.data() + sizeof(engine::Stamp), &*ready, sizeof *ready);
}

double SimTransport::sending_s(const SimTransport& to, std::uint64_t bytes) const {
    if (shares_memory_with(to)) return 0;
    return worker_.work().send_s + worker_.work().send_byte_s * static_cast<double>(bytes);
}

double SimTransport::receiving_s(const SimTransport& from, std::uint64_t bytes) const {
    if (shares_memory_with(from)) return static_cast<double>(bytes) / worker_.work().copy_Bps;
    return worker_.work().receive_s + worker_.work().receive_byte_s * static_cast<double>(bytes);
}

void SimTransport::end_push(Completion* completion) {
    Arrival* drained = new_arrival(Arrival::Kind::drained);
    drained->completion = completion;
    inbox_.push_back(drained);
    worker_.wake();
}

}  // namespace offpath::sim
