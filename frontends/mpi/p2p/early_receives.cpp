// Early receives: the front end asks the device for a message before any part of the message has arrived.
//
// A receive that names source and tag gets the message with its number, unless an older receive with a
// wildcard can still take a message of that source and tag. Numbers count posted receives. They stay right if
// a receive gets its message from the host's MPI, fails, or is matched late. Only a cancelled receive moves
// the later ones up (settle_early).
#include <algorithm>

#include "communicators/communicators.h"
#include "counts.h"
#include "lock.h"
#include "parcel_progress.h"
#include "runtime/backoff.h"
#include "runtime/losses.h"

namespace offpath::mpi::p2p {
namespace {

// The limit of this process: operations that end by themselves must always have room in the channel.
constexpr std::uint32_t most_early_in_flight = 1024;

std::vector<Parcel*> early_parcels;

}  // namespace

bool wildcard_in_the_way(Pairs& pairs, int source, int tag) {
    for (std::size_t i = 0; i < pairs.wild.size();) {
        Parcel* older = pairs.wild[i];
        if (!matches(older->peer, older->tag, source, tag)) {
            ++i;
            continue;
        }
        advance(*older);
        if (i < pairs.wild.size() && pairs.wild[i] == older) return true;
    }
    return false;
}

void not_early(Parcel& parcel) {
    std::erase(early_parcels, &parcel);
    parcel.early = false;
    early_in_flight.fetch_sub(1, std::memory_order_relaxed);
}

void try_early(Parcel& parcel) {
    if (is_lost(parcel.pairs->world(parcel.peer))) return;
    if (!parcel.numbered || early_in_flight.load(std::memory_order_relaxed) >= most_early_in_flight) return;
    parcel.key = {parcel.pairs->id,
                  std::uint64_t{static_cast<std::uint32_t>(parcel.tag)} << 32 | parcel.number};
    // A lost device is reported when a message needs it.
    if (ask_device(parcel, parcel.capacity) != OFFPATH_OK) return release_staging(parcel.staging);
    parcel.early = true;
    early_parcels.push_back(&parcel);
    early_in_flight.fetch_add(1, std::memory_order_relaxed);
}

void drop_early(Parcel& parcel) {
    if (parcel.keyed_message != nullptr) {
        if (offpath_request_test(parcel.keyed_message) == OFFPATH_ERR_PEER_LOST)
            lost_rank(parcel.pairs->world(parcel.peer));
        offpath_message_cancel(world_team(), static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)),
                               parcel.key);
        offpath_request_free(parcel.keyed_message);
        parcel.keyed_message = nullptr;
    }
    not_early(parcel);
    release_staging(parcel.staging);
}

bool withdraw(std::uint32_t source, const offpath_message_key_t& key, offpath_request_h keyed_message) {
    offpath_message_cancel(world_team(), source, key);
    offpath_status_t status = OFFPATH_IN_PROGRESS;
    for (Backoff backoff; keyed_message != nullptr;
         backoff.pause(runtime().threads ? nullptr : keyed_message)) {
        status = offpath_request_test(keyed_message);
        if (status != OFFPATH_IN_PROGRESS) break;
    }
    // After the loss of the device, nothing will arrive through it either.
    if (status != OFFPATH_ERR_CANCELED && status != OFFPATH_ERR_PEER_LOST) return false;
    offpath_request_free(keyed_message);
    return true;
}

bool take_back(Parcel& parcel) {
    if (!withdraw(static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)), parcel.key,
                  parcel.keyed_message))
        return false;
    parcel.keyed_message = nullptr;
    not_early(parcel);
    release_staging(parcel.staging);
    return true;
}

void settle_early(Pairs& pairs, int source, int tag) {
    std::vector<Parcel*> met;
    for (Parcel* parcel : std::vector<Parcel*>(early_parcels)) {
        if (parcel->pairs != &pairs || parcel->peer != source || parcel->tag != tag) continue;
        if (!take_back(*parcel)) met.push_back(parcel);
    }
    // Their headers are on the way, behind everything that was sent before.
    for (Parcel* parcel : met) {
        for (Backoff backoff; !parcel->host_done; backoff.pause())
            advance(*parcel);
    }
}

void cancel(Parcel& parcel) {
    if (!parcel.receives || advance(parcel) || parcel.host_done) return;
    if (is_exact(parcel.peer, parcel.tag)) settle_early(*parcel.pairs, parcel.peer, parcel.tag);
    if (parcel.host_done) return;
    PMPI_Cancel(&parcel.handle);
    // If no message matched it, it ends at once, and from now on later receives have other numbers.
    advance(parcel);
}

}  // namespace offpath::mpi::p2p
