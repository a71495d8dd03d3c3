#include "transport/ucx/import.h"

namespace offpath::transport::ucx {

Status add_import_features(MemorySource source, unsigned long& features, std::string& problem) {
    if (source == MemorySource::none) return Status::ok;
    features |= UCP_FEATURE_RMA;
    if (source == MemorySource::own_process) return Status::ok;
#ifdef OFFPATH_UCX_EXPORTED_MEMORY
    (void)problem;
    features |= UCP_FEATURE_EXPORTED_MEMH;
    return Status::ok;
#else
    problem = "this was built with a UCX before 1.14, which has no exported memory handles";
    return Status::unsupported;
#endif
}

ucs_status_t import_memory(ucp_context_h context, MemorySource source,
                           [[maybe_unused]] std::span<const std::byte> blob, std::uint64_t address,
                           std::uint64_t bytes, Memory& memory) {
    ucp_mem_map_params_t params{};
    if (source == MemorySource::own_process) {
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = reinterpret_cast<void*>(address);
        params.length = bytes;
    } else {
#ifdef OFFPATH_UCX_EXPORTED_MEMORY
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
        params.exported_memh_buffer = blob.data();
#endif
    }
    return memory.map(context, params);
}

}  // namespace offpath::transport::ucx
