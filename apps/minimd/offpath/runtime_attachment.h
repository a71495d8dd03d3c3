// What devices of offpath's runtime have in common, whatever they compute: the attachment with its kernels,
// memory that the device reaches, and lists of pairs in such memory.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "minimd/cells/pair_list.h"
#include "minimd/offpath/runtime_context.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

struct RuntimeSettings {
    int lanes = 0;                  // of the lists' blocks
    int threads = 1, slowness = 1;  // of the device; everything is computed so many times
    LjParameters parameters;        // of Lennard-Jones forces
};

// This process attached to its device, with kernels loaded.
class RuntimeAttachment {
  public:
    // Collective. Throws mpi_support::UsageError on all ranks alike if one of them cannot have its device.
    RuntimeAttachment(MPI_Comm comm, const runtime::Numbers& numbers,
                      std::initializer_list<const char*> symbols);

    offpath_context_h context() const { return context_.handle(); }
    offpath_kernel_h kernel(std::size_t symbol) const { return kernels_[symbol]; }

  private:
    RuntimeContext context_;
    std::vector<offpath_kernel_h> kernels_;
};

// Waits for the request, if there is one, and gives it back. False: it ended with an error.
bool settle(offpath_request_h& request);

// Memory that the device reaches best. Grows and never shrinks.
class RuntimeMemory {
  public:
    explicit RuntimeMemory(offpath_context_h context) : context_(context) {}
    ~RuntimeMemory();
    RuntimeMemory(const RuntimeMemory&) = delete;
    RuntimeMemory& operator=(const RuntimeMemory&) = delete;

    // Loses what is there. False: the device is lost, or there is no memory. Nothing may use it.
    bool reserve(std::size_t bytes);
    offpath_status_t status() const { return status_; }  // of the last that had to ask for more
    void* data() const { return data_; }
    // Does the device read and write it where it is?
    bool in_place() const;
    offpath_kernel_buffer_t buffer(std::size_t bytes, offpath_access_t access) const {
        return {data_, bytes, access};
    }

  private:
    offpath_context_h context_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    offpath_status_t status_ = OFFPATH_OK;
};

// All of the host's lists as one: every interior row, then those that need ghosts.
class RuntimeLists {
  public:
    explicit RuntimeLists(offpath_context_h context) : rows_(context), blocks_(context) {}
    ~RuntimeLists() { settle(keeping_); }
    RuntimeLists(const RuntimeLists&) = delete;
    RuntimeLists& operator=(const RuntimeLists&) = delete;

    // False: the device is lost, or cannot take them. No kernel may use what was there.
    bool fill(const std::vector<PairLists>& from);
    // Has a device that does not share this memory keep copies, by minimd_lists.
    bool send(offpath_kernel_h keep);
    // False: it could not keep them.
    bool kept() { return settle(keeping_); }
    // With room for what `other` has.
    bool reserve_as(const RuntimeLists& other);
    bool empty() const { return rows_.data() == nullptr; }

    const std::vector<std::int32_t>& ends() const { return ends_; }  // of each interior list
    std::int32_t interior_rows() const { return ends_.empty() ? 0 : ends_.back(); }
    std::int32_t rows() const { return all_rows_; }
    offpath_kernel_buffer_t row_buffer() const { return rows_.buffer(row_bytes_, OFFPATH_IN); }
    offpath_kernel_buffer_t block_buffer() const { return blocks_.buffer(block_bytes_, OFFPATH_IN); }

  private:
    RuntimeMemory rows_, blocks_;
    std::size_t row_bytes_ = 0, block_bytes_ = 0;
    std::vector<std::int32_t> ends_;
    std::int32_t all_rows_ = 0;
    offpath_request_h keeping_ = nullptr;
};

}  // namespace minimd
