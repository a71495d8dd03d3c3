// Attaches this process to the device of its node, through offpath's runtime.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include "minimd/offpath/device_memory.h"

namespace minimd {

class RuntimeContext final : public DeviceHeap {
  public:
    // Attaches all ranks of `comm`, or none of them. status() then says why. The ranks of `comm` are those of
    // the context's world. Collective.
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
