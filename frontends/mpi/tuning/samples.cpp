#include "samples.h"

#include <mutex>

#include "agreement.h"
#include "base/clock.h"

namespace offpath::mpi {
namespace {

struct Followed {
    MPI_Request request = MPI_REQUEST_NULL;
    Team* team = nullptr;  // null: a free place; else a reference is held
    Slot* slot = nullptr;
    Engine engine = Engine::host;
    std::uint64_t begun_ns = 0;
    Sample sample;
};

constexpr std::size_t places = 16;
constexpr int most_looked_at = 256;  // of one call's requests

std::mutex mutex;  // guards what follows
std::array<Followed, places> followed;
std::size_t oldest = 0;

thread_local Followed begun;

std::uint64_t now_ns() {
    return SteadyClock().now_ns();
}

Followed* find(MPI_Request request) {
    for (Followed& one : followed) {
        if (one.team != nullptr && one.request == request) return &one;
    }
    return nullptr;
}

void forget(Followed& one) {
    if (one.team == nullptr) return;
    release(*one.team);
    one.team = nullptr;
    requests_followed.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void begin_sample(Team& team, Slot& slot, Engine engine) {
    begun = {};
    begun.team = &team;
    begun.slot = &slot;
    begun.engine = engine;
    begun.begun_ns = now_ns();
}

int posted(int result, const MPI_Request* request) {
    if (begun.team == nullptr) return result;
    Followed one = begun;
    begun.team = nullptr;
    if (result != MPI_SUCCESS || *request == MPI_REQUEST_NULL) return result;
    one.request = *request;
    one.sample.exposed_ns = now_ns() - one.begun_ns;
    retain(*one.team);
    const std::lock_guard lock(mutex);
    Followed* place = find(one.request);  // its request ended unseen, and the handle is another's now
    if (place == nullptr) {
        place = &followed[oldest];
        oldest = (oldest + 1) % places;
    }
    forget(*place);
    *place = one;
    requests_followed.fetch_add(1, std::memory_order_relaxed);
    return result;
}

void FollowedWait::begin(int count, const MPI_Request* requests) {
    if (requests == nullptr) return;
    const std::lock_guard lock(mutex);
    for (int i = 0; i < count && i < most_looked_at && found_ < requests_.size(); ++i) {
        if (requests[i] != MPI_REQUEST_NULL && find(requests[i]) != nullptr)
            requests_[found_++] = {&requests[i], requests[i]};
    }
    started_ns_ = now_ns();
}

void FollowedWait::end() {
    const std::uint64_t now = now_ns();
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < found_; ++i) {
        Followed* one = find(requests_[i].request);
        if (one == nullptr) continue;
        one->sample.exposed_ns += now - started_ns_;
        if (*requests_[i].at == requests_[i].request) continue;  // not done yet
        one->sample.elapsed_ns = now - one->begun_ns;
        one->team->tuning->choices.add_sample(*one->slot, one->engine, one->sample);
        forget(*one);
    }
}

void forget_samples() {
    begun.team = nullptr;
    const std::lock_guard lock(mutex);
    for (Followed& one : followed)
        forget(one);
}

}  // namespace offpath::mpi
