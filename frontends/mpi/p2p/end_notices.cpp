#include "end_notices.h"

#include "communicator_state.h"
#include "runtime/mailbox.h"

namespace offpath::mpi::p2p {
namespace {

Arriving<EndNotice> arriving_notice;
Mailbox<EndNotice> end_notices(arriving_notice);

}  // namespace

void open_notices() {
    end_notices.open(payload_comm(), payload_tags());  // no payload has this tag
}

void close_notices() {
    end_notices.close([](const EndNotice&) {});
}

void send_notice(int to, const EndNotice& notice) {
    end_notices.send(to, notice);
}

// Asking the host's MPI whether a notice has arrived may cost a process its core if others share the core,
// because some MPI libraries yield it in every call that finds nothing. A notice that the library received
// while it waited for something else is already in memory, so memory is checked first.
std::optional<EndNotice> next_notice(bool ask) {
    if (!ask && !arriving_notice.has_come()) return std::nullopt;
    return end_notices.next();
}

}  // namespace offpath::mpi::p2p
