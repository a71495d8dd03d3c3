#include "parcel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <vector>

#include "communicators/communicators.h"
#include "header_watcher.h"
#include "outstanding.h"
#include "parcel_progress.h"
#include "runtime/request_hash.h"
#include "short_receives.h"

namespace offpath::mpi::p2p {
namespace {

constexpr std::size_t bucket_count = 4096;
// The most bytes of landing memory that are kept; most of its pages were never touched.
constexpr std::size_t most_kept_bytes = std::size_t{256} << 20;

std::vector<std::unique_ptr<Parcel>> all_parcels;
Parcel* free_parcels = nullptr;
std::array<Parcel*, bucket_count> by_handle{};
std::vector<Parcel*> attended;
std::size_t attended_next = 0;

struct Landing {
    char* memory;
    std::size_t bytes;
};
std::vector<Landing> free_landings;
std::size_t kept_bytes = 0;

// Rounds to a few different sizes, so that kept blocks can be reused.
std::size_t size_for(std::size_t bytes) {
    return bytes > most_kept_bytes ? bytes : std::bit_ceil(bytes);
}

Parcel*& bucket_of(MPI_Request request) {
    return by_handle[hash_of(request) >> 52];
}

}  // namespace

void Parcel::reset() {
    *this = Parcel{};
}

Parcel& acquire_parcel(Team& team, Pairs& pairs, bool receives) {
    if (free_parcels == nullptr) {
        all_parcels.push_back(std::make_unique<Parcel>());
        free_parcels = all_parcels.back().get();
    }
    Parcel& parcel = *free_parcels;
    free_parcels = parcel.next;
    parcel.reset();
    parcel.team = &team;
    parcel.pairs = &pairs;
    parcel.receives = receives;
    retain(team);
    return parcel;
}

void release_parcel(Parcel& parcel) {
    forget_parcel(parcel);
    disregard(parcel);
    if (parcel.wild) std::erase(parcel.pairs->wild, &parcel);
    if (Asked asked; unwatch(parcel, &asked))
        withdraw(asked.header.source, asked.header.key, asked.keyed_message);
    release_staging(parcel.staging);
    if (parcel.short_receive != nullptr)
        release_short(*parcel.short_receive);
    else if (parcel.landing != nullptr && parcel.landing != parcel.own.data())
        release_landing(parcel.landing, parcel.landing_bytes);
    if (parcel.use.layout != nullptr) release(*parcel.use.layout);
    release(*parcel.team);
    parcel.next = free_parcels;
    free_parcels = &parcel;
}

void register_parcel(Parcel& parcel) {
    Parcel*& bucket = bucket_of(parcel.handle);
    parcel.next = bucket;
    bucket = &parcel;
    parcel.registered = true;
    outstanding.parcels.raise();
}

void forget_parcel(Parcel& parcel) {
    if (!parcel.registered) return;
    Parcel** link = &bucket_of(parcel.handle);
    while (*link != &parcel)
        link = &(*link)->next;
    *link = parcel.next;
    parcel.registered = false;
    outstanding.parcels.lower();
}

Parcel* find_registered(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return nullptr;
    Parcel* parcel = bucket_of(request);
    while (parcel != nullptr && parcel->handle != request)
        parcel = parcel->next;
    return parcel;
}

Parcel* find_parcel(MPI_Request request) {
    ShortReceive* const receive = request != MPI_REQUEST_NULL ? take_short(request) : nullptr;
    return receive != nullptr ? &become_parcel(*receive, request) : find_registered(request);
}

void attend(Parcel& parcel) {
    if (parcel.attended) return;
    parcel.attended = true;
    parcel.attended_at = attended.size();
    attended.push_back(&parcel);
    outstanding.attended.raise();
}

void disregard(Parcel& parcel) {
    if (!parcel.attended) return;
    parcel.attended = false;
    attended.back()->attended_at = parcel.attended_at;
    attended[parcel.attended_at] = attended.back();
    attended.pop_back();
    outstanding.attended.lower();
}

Parcel* next_attended() {
    if (attended.empty()) return nullptr;
    return attended[attended_next++ % attended.size()];
}

bool all_attended_are_the_hosts() {
    return attended.size() == outstanding.attended &&
           std::all_of(attended.begin(), attended.end(), [](const Parcel* parcel) {
               return parcel->receives && parcel->by_host && parcel->left_ns == 0;
           });
}

bool any_forsaken_send() {
    return std::any_of(attended.begin(), attended.end(),
                       [](const Parcel* parcel) { return parcel->forsaken && !parcel->receives; });
}

bool any_forsaken(const Team& team) {
    return std::any_of(attended.begin(), attended.end(),
                       [&](const Parcel* parcel) { return parcel->forsaken && parcel->team == &team; });
}

char* acquire_landing(std::size_t bytes) {
    const std::size_t size = size_for(bytes);
    const auto found = std::find_if(free_landings.begin(), free_landings.end(),
                                    [&](const Landing& landing) { return landing.bytes == size; });
    if (found == free_landings.end()) return static_cast<char*>(std::malloc(size));
    char* memory = found->memory;
    *found = free_landings.back();
    free_landings.pop_back();
    kept_bytes -= size;
    return memory;
}

void release_landing(char* landing, std::size_t bytes) {
    const std::size_t size = size_for(bytes);
    if (kept_bytes + size > most_kept_bytes) return std::free(landing);
    free_landings.push_back({landing, size});
    kept_bytes += size;
}

void close_parcels() {
    for (const Landing& landing : free_landings)
        std::free(landing.memory);
    free_landings.clear();
    kept_bytes = 0;
}

}  // namespace offpath::mpi::p2p
