#include "small_messages.h"

#include <mutex>

#include "runtime/own_communicators.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

MPI_Comm shared = MPI_COMM_NULL;
// The number of tags of the first lane. It is larger than the number of communicators that a host's MPI can
// have.
constexpr int lane_tags = 65536;
int largest_tag = 32767;

std::mutex tags_mutex;
int next_unused = 0;
std::vector<int> given_back;

// Returns a negative number if no tag is left.
int take_tag() {
    const std::lock_guard lock(tags_mutex);
    if (!given_back.empty()) {
        const int tag = given_back.back();
        given_back.pop_back();
        return tag;
    }
    return next_unused <= largest_tag && next_unused < lane_tags ? next_unused++ : -1;
}

void give_back(int tag) {
    const std::lock_guard lock(tags_mutex);
    given_back.push_back(tag);
}

}  // namespace

SmallLane SmallLane::numbered(std::uint64_t number) {
    // Lane 0 must have room for all tags.
    const std::uint64_t lanes = (static_cast<std::uint64_t>(largest_tag) + 1) / lane_tags;
    SmallLane lane;
    lane.first_tag_ = number < lanes ? static_cast<int>(number) * lane_tags : -1;
    return lane;
}

SmallLane SmallLane::of_persistent(std::uint64_t number) {
    return numbered(number + 3);
}

SmallLane SmallLane::after_loss() const {
    SmallLane lane = *this;
    lane.after_loss_ = true;
    return lane;
}

// The tags of mailboxes are below those of all lanes that use their communicator.
MPI_Comm SmallLane::comm() const {
    return after_loss_ ? runtime().service : shared;
}

// Second runs, and results that are given, have the same tags on the other communicator.
SmallLane SmallLane::of_agreements() {
    return numbered(1).after_loss();
}

SmallLane SmallLane::of_posted_agreements() {
    return numbered(2).after_loss();
}

SmallLane SmallLane::of_second_runs() {
    return numbered(1);
}

SmallLane SmallLane::of_given_results() {
    return numbered(2);
}

SmallMessages::~SmallMessages() {
    if (tag_ >= 0 && reusable_) give_back(tag_);
}

int SmallMessages::take_tag() {
    tag_ = mpi::take_tag();
    return tag_;
}

int SmallMessages::receive(void* elements, int count, MPI_Datatype type, int source, SmallLane lane,
                           MPI_Request* request) const {
    const SmallPeer& peer = peers_[static_cast<std::size_t>(source)];
    return PMPI_Irecv(elements, count, type, peer.world_rank, lane.first_tag() + tag_, lane.comm(), request);
}

int SmallMessages::send(const void* elements, int count, MPI_Datatype type, int dest, SmallLane lane,
                        MPI_Request* request) const {
    const SmallPeer& peer = peers_[static_cast<std::size_t>(dest)];
    return PMPI_Isend(elements, count, type, peer.world_rank, lane.first_tag() + peer.tag, lane.comm(),
                      request);
}

void open_small_messages() {
    shared = own_communicator(runtime().service);
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    if (found != 0) largest_tag = *static_cast<int*>(value);
}

void close_small_messages() {
    PMPI_Comm_free(&shared);
}

}  // namespace offpath::mpi
