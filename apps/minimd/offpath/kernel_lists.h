// All lists of a host as one list, in memory of a device: every interior row, then the rows that need ghosts.
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
    // `runner` must outlive this object.
    explicit KernelLists(KernelRunner& runner) : runner_(runner), rows_(runner), blocks_(runner) {}
    ~KernelLists() { runner_.settle(keeping_); }
    KernelLists(const KernelLists&) = delete;
    KernelLists& operator=(const KernelLists&) = delete;

    // Copies the lists. No kernel may be using the earlier ones. Returns false if the device is lost or
    // cannot take them.
    bool fill(const std::vector<PairLists>& from);
    // Makes a device that does not share this memory keep copies. Returns false if the device is lost.
    bool send();
    // Waits until the device has kept them. Returns false if it could not.
    bool kept() { return runner_.settle(keeping_); }
    // Makes as much room as `other` needs.
    bool reserve_as(const KernelLists& other);
    bool empty() const { return rows_.data() == nullptr; }

    const std::vector<std::int32_t>& ends() const { return ends_; }  // end of each interior list
    std::int32_t interior_rows() const { return ends_.empty() ? 0 : ends_.back(); }
    std::int32_t rows() const { return all_rows_; }
    // The first slot of the first block that the interior rows in `ranges` need, for lists that have each
    // pair once. Rows of such lists belong to the earlier slot of each pair, and are in the order of slots.
    // `own` is returned if there are no such rows.
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
