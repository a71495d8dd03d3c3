// Persistent sends and receives between ranks that take part: each start is a non-blocking call with the
// arguments kept.
#include <mpi.h>
#include <offpath/types.h>

#include <memory>

#include "communicators.h"
#include "moving.h"
#include "persistent.h"

using namespace offpath::mpi;
using namespace offpath::mpi::p2p;

namespace {

// What a persistent message uses until it is freed, though the program may have freed it: its datatype, in
// the place of which it sets its own, and its communicator.
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
    if (request == nullptr || !takes_part(a, team, pairs) || !use_type(a.type).usable)
        return on_host(a.buffer, a.count, a.type, a.peer, a.tag, a.comm, request);
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
    if (request == nullptr || !may_get_header(kept, team, pairs) || !use_type(type).usable)
        return PMPI_Recv_init(buffer, count, type, source, tag, comm, request);
    const auto held = std::make_shared<KeptMessage>(*team, kept.type);
    return make_persistent([kept, held](MPI_Request* started) { return receive_now(kept, started); },
                           request);
}
