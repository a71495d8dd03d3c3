// What the intercepted calls share: which of them are recorded, and the sizes of what they move.
#pragma once

#include "profile/recorder.h"

#include <atomic>

namespace offpath::profile {

// Recording of one call. False: the host's call runs alone, since the job is not profiled now, the call comes
// from inside MPI, or from a thread that did not initialise MPI.
class Scope {
  public:
    Scope();
    ~Scope();
    Scope(const Scope&) = delete;
    explicit operator bool() const { return recorder_ != nullptr; }
    Recorder* operator->() const { return recorder_; }

  private:
    Recorder* recorder_;
};

// The recorder in the thread that records, else null. A call from inside MPI has it too.
extern constinit thread_local Recorder* recorder_of_thread;

// Reads where the profile goes and what the host's MPI has: after MPI_Init.
void begin_profile();
// Writes the profile: before the host's MPI_Finalize.
void end_profile();
// A datatype's handle may be used again.
void forget_datatypes();

std::uint64_t bytes_of(int count, MPI_Datatype type);
// In scratch memory, until the next call of either.
std::span<const std::uint64_t> blocks_of(MPI_Comm comm, const int* counts, MPI_Datatype type);
std::span<const std::uint64_t> vectors_of(MPI_Comm comm, const int* sent, MPI_Datatype sent_type,
                                          const int* received, MPI_Datatype received_type);
// As vectors_of, with a type for each block.
std::span<const std::uint64_t> typed_vectors_of(MPI_Comm comm, const int* sent,
                                                const MPI_Datatype* sent_types, const int* received,
                                                const MPI_Datatype* received_types);
bool is_root(MPI_Comm comm, int root);

CallKind kind_of(const char* name, const void* site);
CallKind collective_kind(Recorder& recorder, const char* name, const void* site, MPI_Comm comm);

}  // namespace offpath::profile
