// The reductions of the C API.
#include <offpath/collectives.h>

extern "C" {

offpath_status_t offpath_reduction_supported(offpath_context_h, offpath_type_t, offpath_reduction_t) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iallreduce(offpath_team_h, const void*, void*, size_t, offpath_type_t,
                                    offpath_reduction_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_ireduce(offpath_team_h, const void*, void*, size_t, offpath_type_t,
                                 offpath_reduction_t, uint32_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_ireduce_scatter(offpath_team_h, const void*, void*, const size_t*, offpath_type_t,
                                         offpath_reduction_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_ireduce_scatter_block(offpath_team_h, const void*, void*, size_t, offpath_type_t,
                                               offpath_reduction_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iscan(offpath_team_h, const void*, void*, size_t, offpath_type_t,
                               offpath_reduction_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}

offpath_status_t offpath_iexscan(offpath_team_h, const void*, void*, size_t, offpath_type_t,
                                 offpath_reduction_t, offpath_request_h*) {
    return OFFPATH_ERR_UNSUPPORTED;
}
}
