#include "base/status.h"

namespace offpath {

const char* to_string(Status status) {
    switch (status) {
        case Status::ok:
            return "success";
        case Status::in_progress:
            return "in progress";
        case Status::retry:
            return "no room at this moment, try again";
        case Status::invalid:
            return "invalid argument";
        case Status::unavailable:
            return "no daemon available";
        case Status::version:
            return "client and daemon speak different versions";
        case Status::unsupported:
            return "not supported here";
        case Status::memory:
            return "out of memory";
        case Status::access:
            return "transfer outside its memory region";
        case Status::truncated:
            return "message longer than its receive buffer";
        case Status::peer_lost:
            return "a rank or its proxy was lost";
        case Status::protocol:
            return "malformed message";
        case Status::canceled:
            return "canceled";
        case Status::system:
            return "system call failed";
    }
    return "unknown status";
}

}  // namespace offpath

extern "C" const char* offpath_status_string(offpath_status_t status) {
    return offpath::to_string(offpath::from_c(status));
}
