// This process attached to the device of its node, through offpath's runtime.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "minimd/offpath/device_memory.h"

namespace minimd {

class RuntimeContext final : public DeviceHeap {
  public:
    // Collective. Attaches all ranks of `comm`, whose ranks are those of the context's world, or none:
    // status() then says why.
    explicit RuntimeContext(MPI_Comm comm);
    ~RuntimeContext() override;
    RuntimeContext(const RuntimeContext&) = delete;
    RuntimeContext& operator=(const RuntimeContext&) = delete;

    offpath_status_t status() const { return status_; }
    offpath_context_h handle() const { return context_; }

    offpath_status_t allocate(std::size_t bytes, void** data) override {
        return offpath_mem_alloc(context_, bytes, data);
    }
    void release(void* data) override { offpath_mem_free(context_, data); }

  private:
    offpath_context_h context_ = nullptr;
    offpath_status_t status_;
};

}  // namespace minimd
