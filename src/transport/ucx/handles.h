// Owners of UCX's memory handles, parameters of its operations, and the UCX features that this build's
// headers have.
#pragma once

#include <ucp/api/ucp.h>

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

}  // namespace offpath::transport::ucx
