// Early receives: the device is asked for a message before anything of it has come.
//
// A receive that names source and tag gets the message whose number it has, as long as no older receive with
// a wildcard can still take one of that source and tag. Numbers count receives that were posted, so they stay
// right when a receive gets its message from the host's MPI, fails or is matched late; only a cancelled one
// moves those behind it up (settle_early).
#include <algorithm>

#include "backoff.h"
#include "communicators.h"
#include "counts.h"
#include "lock.h"
#include "losses.h"
#include "moving.h"

namespace offpath::mpi::p2p {
namespace {

// Of this process, so that operations that end by themselves always have room in the channel.
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
    if (parcel.mail != nullptr) {
        if (offpath_request_test(parcel.mail) == OFFPATH_ERR_PEER_LOST)
            lost_rank(parcel.pairs->world(parcel.peer));
        offpath_message_cancel(world_team(), static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)),
                               parcel.key);
        offpath_request_free(parcel.mail);
        parcel.mail = nullptr;
    }
    not_early(parcel);
    release_staging(parcel.staging);
}

bool withdraw(std::uint32_t source, const offpath_message_key_t& key, offpath_request_h mail) {
    offpath_message_cancel(world_team(), source, key);
    offpath_status_t status = OFFPATH_IN_PROGRESS;
    for (Backoff backoff; mail != nullptr; backoff.pause(runtime().threads ? nullptr : mail)) {
        status = offpath_request_test(mail);
        if (status != OFFPATH_IN_PROGRESS) break;
    }
    // What a lost device has met comes to nothing either.
    if (status != OFFPATH_ERR_CANCELED && status != OFFPATH_ERR_PEER_LOST) return false;
    offpath_request_free(mail);
    return true;
}

bool take_back(Parcel& parcel) {
    if (!withdraw(static_cast<std::uint32_t>(parcel.pairs->world(parcel.peer)), parcel.key, parcel.mail))
        return false;
    parcel.mail = nullptr;
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
    // Their headers are on the way, and behind whatever was sent before them.
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
    // If nothing had matched it, it ends at once, and those behind it have other numbers from here on.
    advance(parcel);
}

}  // namespace offpath::mpi::p2p
