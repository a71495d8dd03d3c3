// ExportedRegions: the memory that this process has exported to a device that can import it (back end xgvmi):
// the registration of each region. Ownership: the attachment. A region must end after the device has released
// it, and before its memory ends. Threads: any.
#pragma once

#include "memory/exported/host_exporter.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

namespace offpath::client {

class ExportedRegions {
  public:
    explicit ExportedRegions(std::unique_ptr<memory::HostExporter> exporter)
        : exporter_(std::move(exporter)) {}

    // `blob`, for the device, is valid until remove().
    Status add(std::uint64_t id, void* address, std::size_t bytes, std::span<const std::byte>& blob,
               std::string& problem) {
        std::lock_guard lock(mutex_);
        std::unique_ptr<memory::HostExport> made;
        const Status status = exporter_->export_region(address, bytes, made, problem);
        if (status != Status::ok) return status;
        blob = made->blob();
        regions_[id] = std::move(made);
        return Status::ok;
    }
    void remove(std::uint64_t id) {
        std::lock_guard lock(mutex_);
        regions_.erase(id);
    }

  private:
    std::mutex mutex_;
    std::unique_ptr<memory::HostExporter> exporter_;
    std::unordered_map<std::uint64_t, std::unique_ptr<memory::HostExport>> regions_;
};

}  // namespace offpath::client
