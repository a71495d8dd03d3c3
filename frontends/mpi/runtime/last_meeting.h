// LastMeeting: all ranks meet without devices, while the host's MPI makes no progress.
//
// Rank 0 listens on a TCP port and tells the others by the host's MPI where. Each of them connects, names a
// secret that rank 0 has drawn, and waits until rank 0 has heard all of them. Rank 0 closes a connection that
// does not name the secret. It needs a descriptor for each rank, so larger jobs do not meet.
//
// Collective over the communicator. Threads: one.
#pragma once

#include <mpi.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>

#include "base/file_descriptor.h"

namespace offpath::mpi {

class LastMeeting {
  public:
    // Lets the host's MPI progress.
    explicit LastMeeting(MPI_Comm comm);
    // Returns true once all ranks have called it. False: at least one rank could not be reached within 10 s.
    bool wait_for_all();

  private:
    static constexpr std::size_t most_places = 8;
    struct Invitation {
        std::array<std::uint64_t, 2> secret{};
        std::array<sockaddr_in6, most_places> places{};  // IPv4 addresses use the beginning of theirs
        std::uint32_t count = 0;                         // 0: nobody listens
    };

    void listen();
    bool receive_all(std::uint64_t deadline_ns);
    bool visit(std::uint64_t deadline_ns) const;

    int rank_ = 0, size_ = 0;
    Invitation invitation_;
    FileDescriptor listener_;
};

}  // namespace offpath::mpi
