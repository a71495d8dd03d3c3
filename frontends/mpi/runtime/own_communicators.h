// Communicators of the front end's own. The program's communicators must not notice them:
//
// - No call here is a collective of a communicator that the program has, except of MPI_COMM_WORLD in
//   MPI_Init, and none is a non-blocking one there. Open MPI numbers the non-blocking collectives of each
//   communicator, and makes new communicators by them. Up to 4.1 some of these numbers are also the tags of
//   messages in MPI_Dist_graph_create, which may then hang. A program that is free of that by itself has to
//   stay free of it.
// - A new communicator gets the lowest free identifier. Ours must not take the ones that the program's first
//   communicators would have (FirstIdentifiersKept).
//
// Threads: any; calls of own_communicator() must not overlap.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>

namespace offpath::mpi {

// A communicator with the ranks of `like`, without its attributes. Its errors return. Collective over `like`,
// which is ours, MPI_COMM_SELF, or in MPI_Init MPI_COMM_WORLD.
MPI_Comm own_communicator(MPI_Comm like);

// A tag that this process uses for own_communicator_of() alone, while the object exists. Ranks that give the
// same number get the same tag, and one that has it already says so.
class OwnTag {
  public:
    explicit OwnTag(std::uint64_t number);
    ~OwnTag();
    OwnTag(const OwnTag&) = delete;
    OwnTag& operator=(const OwnTag&) = delete;

    bool is_ours() const { return is_ours_; }
    int value() const { return tag_; }

  private:
    int tag_;
    bool is_ours_;
};

// A communicator of ours with the ranks of `group`. Null: the host's MPI has none. Collective over the group;
// the tag must be theirs on all of its ranks, and the same.
MPI_Comm own_communicator_of(MPI_Group group, const OwnTag& tag);

// While it exists, communicators of ours get later identifiers than the first ones that are free. Local, in
// MPI_Init.
class FirstIdentifiersKept {
  public:
    FirstIdentifiersKept();
    ~FirstIdentifiersKept();
    FirstIdentifiersKept(const FirstIdentifiersKept&) = delete;
    FirstIdentifiersKept& operator=(const FirstIdentifiersKept&) = delete;

  private:
    std::array<MPI_Comm, 32> places_{};
};

}  // namespace offpath::mpi
