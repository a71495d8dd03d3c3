// Owners of UCX's memory handles, parameters of its operations, and the UCX features that this build's
// headers have.
#pragma once

#include "base/network_place.h"

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
#define OFFPATH_UCX_EXPORTED_MEMORY 1
#define OFFPATH_UCX_ENDPOINT_TRANSPORTS 1
#endif

namespace offpath::transport::ucx {

// The parameters of an operation on host memory, which UCX passes to the callback. The caller sets the
// callback.
inline ucp_request_param_t host_memory_params(void* operation) {
    ucp_request_param_t params{};
    params.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    params.user_data = operation;
    return params;
}

// A memory registration. It must be destroyed before its context.
class Memory {
  public:
    Memory() = default;
    Memory(Memory&& other) noexcept
        : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(context_, other.context_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Memory() {
        if (handle_) ucp_mem_unmap(context_, handle_);
    }
    ucs_status_t map(ucp_context_h context, const ucp_mem_map_params_t& params) {
        context_ = context;
        const ucs_status_t status = ucp_mem_map(context, &params, &handle_);
        if (status != UCS_OK) handle_ = nullptr;
        return status;
    }
    ucp_mem_h get() const { return handle_; }

  private:
    ucp_context_h context_ = nullptr;
    ucp_mem_h handle_ = nullptr;
};

// Imported memory of a host, as operations name it: NetworkPlace::registration points here.
struct Registration {
    ucp_context_h context = nullptr;
    ucp_mem_h memory = nullptr;
    std::uint64_t address = 0, bytes = 0;
    ucp_rkey_h key = nullptr;  // through which this process reaches it

    bool holds(std::uint64_t first, std::size_t length) const {
        return first >= address && length <= bytes && first - address <= bytes - length;
    }
    // The record behind a place, if it is of this context and holds so many bytes there; else null.
    static const Registration* of(const NetworkPlace& place, std::size_t bytes, ucp_context_h context) {
        const auto* known = static_cast<const Registration*>(place.registration);
        return known != nullptr && known->context == context && known->holds(place.address, bytes) ? known
                                                                                                   : nullptr;
    }
};

// The parameters of an operation whose local bytes are such memory. UCX then uses the handle, and touches
// nothing.
inline ucp_request_param_t network_params(const Registration& place, void* operation) {
    ucp_request_param_t params = host_memory_params(operation);
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    params.memh = place.memory;
    return params;
}

}  // namespace offpath::transport::ucx
