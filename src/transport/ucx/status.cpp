#include "transport/ucx/status.h"

namespace offpath::transport::ucx {

Status from_ucs(ucs_status_t status) {
    switch (status) {
        case UCS_OK:
            return Status::ok;
        case UCS_ERR_MESSAGE_TRUNCATED:
            return Status::truncated;
        case UCS_ERR_NO_MEMORY:
            return Status::memory;
        case UCS_ERR_INVALID_PARAM:
            return Status::invalid;
        case UCS_ERR_CANCELED:
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_ENDPOINT_TIMEOUT:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_REJECTED:
        case UCS_ERR_TIMED_OUT:
        case UCS_ERR_UNREACHABLE:
            return Status::peer_lost;
        default:
            return Status::system;
    }
}

}  // namespace offpath::transport::ucx
