// All of the host's lists as one, in memory of a device: every interior row, then those that need ghosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "minimd/cells/pair_list.h"
#include "minimd/offpath/device_memory.h"
#include "minimd/offpath/kernel_runner.h"
#include "minimd/offpath/runtime_kernels.h"

namespace minimd {

class KernelLists {
  public:
    // `runner` outlives this.
    explicit KernelLists(KernelRunner& runner) : runner_(runner), rows_(runner), blocks_(runner) {}
    ~KernelLists() { runner_.settle(keeping_); }
    KernelLists(const KernelLists&) = delete;
    KernelLists& operator=(const KernelLists&) = delete;

    // False: the device is lost, or cannot take them. No kernel may use what was there.
    bool fill(const std::vector<PairLists>& from);
    // Has a device that does not share this memory keep copies.
    bool send();
    // False: it could not keep them.
    bool kept() { return runner_.settle(keeping_); }
    // With room for what `other` has.
    bool reserve_as(const KernelLists& other);
    bool empty() const { return rows_.data() == nullptr; }

    const std::vector<std::int32_t>& ends() const { return ends_; }  // of each interior list
    std::int32_t interior_rows() const { return ends_.empty() ? 0 : ends_.back(); }
    std::int32_t rows() const { return all_rows_; }
    // The first slot that interior rows need which have each pair once; its block's first. Such rows have it
    // with the cluster of the earlier slot, and are in the order of slots.
    std::int32_t first_slot(std::span<const runtime::RowRange> ranges, Layout layout, std::int32_t own) const;
    offpath_kernel_buffer_t row_buffer() const { return {rows_.data(), row_bytes_, OFFPATH_IN}; }
    offpath_kernel_buffer_t block_buffer() const { return {blocks_.data(), block_bytes_, OFFPATH_IN}; }

  private:
    KernelRunner& runner_;
    DeviceMemory rows_, blocks_;
    std::size_t row_bytes_ = 0, block_bytes_ = 0;
    std::vector<std::int32_t> ends_;
    std::int32_t all_rows_ = 0;
    KernelRunner::Ticket keeping_ = 0;
};

}  // namespace minimd
