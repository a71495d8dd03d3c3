#include "own_communicators.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "runtime.h"

namespace offpath::mpi {
namespace {

// On runtime().service. Mailboxes have lower tags, small messages higher ones.
constexpr int first_own_tag = 1024, own_tags = 32767 - first_own_tag;

std::mutex tags_mutex;
std::set<int> tags_in_use;

}  // namespace

MPI_Comm own_communicator(MPI_Comm like) {
    // Each rank says this tag to some others, before any message of the program can meet it.
    constexpr int tag = 0;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_group(like, &group);
    // It takes messages only. The other calls take non-blocking collectives of `like`.
    PMPI_Comm_create_group(like, group, tag, &made);
    PMPI_Group_free(&group);
    if (made != MPI_COMM_NULL) PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
}

OwnTag::OwnTag(std::uint64_t number)
    : tag_(first_own_tag + static_cast<int>((number * 0x9E3779B97F4A7C15U >> 32) % own_tags)) {
    const std::lock_guard lock(tags_mutex);
    is_ours_ = tags_in_use.insert(tag_).second;
}

OwnTag::~OwnTag() {
    if (!is_ours_) return;
    const std::lock_guard lock(tags_mutex);
    tags_in_use.erase(tag_);
}

MPI_Comm own_communicator_of(MPI_Group group, const OwnTag& tag) {
    MPI_Comm made = MPI_COMM_NULL;
    if (PMPI_Comm_create_group(runtime().service, group, tag.value(), &made) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
}

FirstIdentifiersKept::FirstIdentifiersKept() {
    std::generate(places_.begin(), places_.end(), [] { return own_communicator(MPI_COMM_SELF); });
}

FirstIdentifiersKept::~FirstIdentifiersKept() {
    // MPICH gives the handle first that was freed last.
    for (auto place = places_.rbegin(); place != places_.rend(); ++place)
        PMPI_Comm_free(&*place);
}

}  // namespace offpath::mpi
