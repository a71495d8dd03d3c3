// Persistent sends and receives between ranks that take part. Each start is a non-blocking call with the
// stored arguments.
#include <mpi.h>
#include <offpath/types.h>

#include <memory>

#include "communicators/communicators.h"
#include "devices/devices.h"
#include "p2p/neighbours.h"
#include "p2p/parcel_progress.h"
#include "requests/persistent_requests.h"

namespace offpath::mpi::p2p {
namespace {

// What a persistent message needs until it is freed: its communicator and its datatype. The program may free
// both earlier, so the message replaces the datatype by its own.
class KeptMessage {
  public:
    KeptMessage(Team& team, MPI_Datatype& type) : team_(team), held_(hold_type(type)) {
        begin_message(team);
        if (held_ != MPI_DATATYPE_NULL) type = held_;
    }
    ~KeptMessage() {
        if (held_ != MPI_DATATYPE_NULL) free_type(&held_);
        end_message(team_);
    }
    KeptMessage(const KeptMessage&) = delete;
    KeptMessage& operator=(const KeptMessage&) = delete;

  private:
    Team& team_;
    MPI_Datatype held_;
};

using Init = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

int init_send(const Arguments& a, Mode mode, Init on_host, MPI_Request* request) {
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (devices::team_of(a.comm) != nullptr) return devices::unsupported("a persistent send", a.comm);
    if (request == nullptr || !takes_part(a, team, pairs) || !use_type(a.type).usable) {
        const int error = on_host(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
        if (error == MPI_SUCCESS) sent_to_neighbour(a);
        return error;
    }
    Arguments kept = a;
    const auto held = std::make_shared<KeptMessage>(*team, kept.type);
    return make_persistent([kept, held, mode](MPI_Request* started) { return send_now(kept, mode, started); },
                           request);
}

}  // namespace

#define INITS_SEND(name, mode)                                                                         \
    extern "C" OFFPATH_API int MPI_##name(const void* buffer, int count, MPI_Datatype type, int dest,  \
                                          int tag, MPI_Comm comm, MPI_Request* request) {              \
        return init_send({const_cast<void*>(buffer), count, type, dest, tag, comm}, mode, PMPI_##name, \
                         request);                                                                     \
    }

INITS_SEND(Send_init, Mode::standard)
INITS_SEND(Ssend_init, Mode::synchronous)
INITS_SEND(Rsend_init, Mode::ready)
INITS_SEND(Bsend_init, Mode::buffered)

extern "C" OFFPATH_API int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                         MPI_Comm comm, MPI_Request* request) {
    Arguments kept{buffer, count, type, source, tag, comm};
    Team* team = nullptr;
    Pairs* pairs = nullptr;
    if (devices::team_of(comm) != nullptr) return devices::unsupported("MPI_Recv_init", comm);
    if (request == nullptr || !may_get_header(kept, team, pairs) || !use_type(type).usable)
        return PMPI_Recv_init(buffer, count, type, source, tag, comm, request);
    const auto held = std::make_shared<KeptMessage>(*team, kept.type);
    return make_persistent([kept, held](MPI_Request* started) { return receive_now(kept, started); },
                           request);
}

}  // namespace offpath::mpi::p2p
