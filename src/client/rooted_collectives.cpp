// Gather, scatter and neighbourhoods of the C API.
#include <offpath/collectives.h>

extern "C" {

offpath_status_t offpath_igather(offpath_team_h, const void*, void*, size_t, uint32_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iscatter(offpath_team_h, const void*, void*, size_t, uint32_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_igatherv(offpath_team_h, const void*, size_t, void*, const size_t*, const size_t*,
                                  uint32_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iscatterv(offpath_team_h, const void*, const size_t*, const size_t*, void*, size_t,
                                   uint32_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_ineighbor_alltoallv(offpath_team_h, const void*, uint32_t, const uint32_t*,
                                             const size_t*, const size_t*, void*, uint32_t, const uint32_t*,
                                             const size_t*, const size_t*, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}
}
