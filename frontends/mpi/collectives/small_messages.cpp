#include "small_messages.h"

#include <mutex>

#include "../runtime.h"

namespace offpath::mpi {
namespace {

MPI_Comm shared = MPI_COMM_NULL;
// Of the first lane: more communicators than a host's MPI has.
constexpr int lane_tags = 65536;
int largest_tag = 32767;

std::mutex mutex;
int next_unused = 0;
std::vector<int> given_back;

// Negative: there is none left.
int take_tag() {
    const std::lock_guard lock(mutex);
    if (!given_back.empty()) {
        const int tag = given_back.back();
        given_back.pop_back();
        return tag;
    }
    return next_unused <= largest_tag && next_unused < lane_tags ? next_unused++ : -1;
}

void give_back(int tag) {
    const std::lock_guard lock(mutex);
    given_back.push_back(tag);
}

}  // namespace

SmallLane SmallLane::of_persistent(std::uint64_t number) {
    // With lane 0 all of them have to fit.
    const std::uint64_t lanes = (static_cast<std::uint64_t>(largest_tag) + 1) / lane_tags;
    SmallLane lane;
    lane.first_tag_ = number + 1 < lanes ? static_cast<int>(number + 1) * lane_tags : -1;
    return lane;
}

SmallMessages::~SmallMessages() {
    if (tag_ >= 0 && reusable_) give_back(tag_);
}

bool SmallMessages::open(MPI_Comm comm, const std::vector<int>& world_ranks, bool good) {
    tag_ = take_tag();
    const int mine = good ? tag_ : -1;
    std::vector<int> tags(world_ranks.size(), -1);
    if (PMPI_Allgather(&mine, 1, MPI_INT, tags.data(), 1, MPI_INT, comm) != MPI_SUCCESS) return false;
    peers_.reserve(tags.size());
    bool all_good = true;
    for (std::size_t rank = 0; rank < tags.size(); ++rank) {
        all_good = all_good && tags[rank] >= 0;
        peers_.push_back({world_ranks[rank], tags[rank]});
    }
    return all_good;
}

int SmallMessages::receive(void* elements, int count, MPI_Datatype type, int source, SmallLane lane,
                           MPI_Request* request) const {
    const SmallPeer& peer = peers_[static_cast<std::size_t>(source)];
    return PMPI_Irecv(elements, count, type, peer.world_rank, lane.first_tag() + tag_, shared, request);
}

int SmallMessages::send(const void* elements, int count, MPI_Datatype type, int dest, SmallLane lane,
                        MPI_Request* request) const {
    const SmallPeer& peer = peers_[static_cast<std::size_t>(dest)];
    return PMPI_Isend(elements, count, type, peer.world_rank, lane.first_tag() + peer.tag, shared, request);
}

void open_small_messages() {
    PMPI_Comm_dup(runtime().service, &shared);
    PMPI_Comm_set_errhandler(shared, MPI_ERRORS_RETURN);
    void* value = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    if (found != 0) largest_tag = *static_cast<int*>(value);
}

void close_small_messages() {
    PMPI_Comm_free(&shared);
}

}  // namespace offpath::mpi
