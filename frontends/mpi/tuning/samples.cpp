#include "samples.h"

#include <algorithm>
#include <mutex>

#include "agreement.h"
#include "base/clock.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

struct Followed {
    MPI_Request request = MPI_REQUEST_NULL;
    Team* team = nullptr;  // null: a free place; otherwise it holds a reference
    Slot* slot = nullptr;
    Slot::Call call;
    std::uint64_t begun_ns = 0;
    std::uint64_t inside_ns = 0;  // in the call that posts it, and in all calls that wait or test
    Sample sample;
};

constexpr std::size_t places = 16;
constexpr int most_looked_at = 256;  // the most requests of one call that are checked

std::mutex samples_mutex;  // guards the following
std::array<Followed, places> followed;
std::size_t oldest = 0;

thread_local Followed begun;

Followed* find_followed(MPI_Request request) {
    for (Followed& one : followed) {
        if (one.team != nullptr && one.request == request) return &one;
    }
    return nullptr;
}

void stop_following(Followed& one) {
    if (one.team == nullptr) return;
    release(*one.team);
    one.team = nullptr;
    outstanding.followed.lower();
}

}  // namespace

void begin_sample(Team& team, Slot& slot, const Slot::Call& call) {
    begun = {};
    begun.team = &team;
    begun.slot = &slot;
    begun.call = call;
    begun.begun_ns = now_ns();
}

int posted(int result, const MPI_Request* request) {
    if (begun.team == nullptr) return result;
    Followed one = begun;
    begun.team = nullptr;
    if (result != MPI_SUCCESS || *request == MPI_REQUEST_NULL) return result;
    one.request = *request;
    one.sample.exposed_ns = one.inside_ns = now_ns() - one.begun_ns;
    retain(*one.team);
    const std::lock_guard lock(samples_mutex);
    // The request ended unobserved, and its handle now belongs to another request.
    Followed* place = find_followed(one.request);
    if (place == nullptr) {
        place = &followed[oldest];
        oldest = (oldest + 1) % places;
    }
    stop_following(*place);
    *place = one;
    outstanding.followed.raise();
    return result;
}

void FollowedWait::begin(int count, const MPI_Request* requests) {
    const std::lock_guard lock(samples_mutex);
    started_ns_ = now_ns();
    if (requests == nullptr) return;
    std::array<MPI_Request, places> sought;
    std::size_t left = 0;
    for (const Followed& one : followed) {
        if (one.team != nullptr) sought[left++] = one.request;
    }
    for (int i = 0; i < count && i < most_looked_at && left > 0 && found_ < requests_.size(); ++i) {
        MPI_Request* const end = sought.data() + left;
        MPI_Request* const at = std::find(sought.data(), end, requests[i]);
        if (at == end) continue;
        requests_[found_++] = {&requests[i], requests[i]};
        *at = sought[--left];
    }
}

void FollowedWait::end() {
    const std::uint64_t now = now_ns();
    const std::lock_guard lock(samples_mutex);
    // With several threads, one thread's calls do not represent another's.
    if (!runtime().threads) {
        for (Followed& one : followed)
            one.inside_ns += now - started_ns_;
    }
    for (std::size_t i = 0; i < found_; ++i) {
        Followed* one = find_followed(requests_[i].request);
        if (one == nullptr) continue;
        one->sample.exposed_ns += now - started_ns_;
        if (*requests_[i].at == requests_[i].request) continue;  // not done yet
        const std::uint64_t inside_ns = runtime().threads ? one->sample.exposed_ns : one->inside_ns;
        one->sample.elapsed_ns = now - one->begun_ns;
        one->sample.outside_ns = one->sample.elapsed_ns - std::min(one->sample.elapsed_ns, inside_ns);
        one->team->tuning->choices.add_sample(*one->slot, one->call, one->sample);
        stop_following(*one);
    }
}

void forget_samples() {
    begun.team = nullptr;
    const std::lock_guard lock(samples_mutex);
    for (Followed& one : followed)
        stop_following(one);
}

}  // namespace offpath::mpi
