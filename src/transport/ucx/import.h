// How a device registers the memory that it is to reach. Tests put an object of their own in the place of
// import.cpp, where no card can import anything.
#pragma once

#include "transport/ucx/handles.h"
#include "transport/ucx/ucx_transport.h"

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::transport::ucx {

// Adds the UCP_FEATURE_* bits of a context that imports. unsupported: this build cannot; `problem` says why.
Status add_import_features(MemorySource source, unsigned long& features, std::string& problem);

// Registers [address, address + bytes) of the memory's owner.
ucs_status_t import_memory(ucp_context_h context, MemorySource source, std::span<const std::byte> blob,
                           std::uint64_t address, std::uint64_t bytes, Memory& memory);

}  // namespace offpath::transport::ucx
