// A stand-in for a network card that exports and imports memory, because no available machine has one. An
// export names the process and the range; an import reads and writes the range by system call. It defines the
// functions of transport/ucx for a daemon and for the library that clients open. All layers above are the
// real ones.
#include "transport/ucx/exported_memory.h"
#include "transport/ucx/import.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace offpath::transport {
namespace {

struct Range {
    std::uint64_t pid = 0, address = 0, bytes = 0;
};

// The export is refused, like a card that cannot register the memory.
constexpr std::size_t refused_bytes = 12345;

class Device final : public DeviceMemory {
  public:
    ~Device() override { close(event_); }
    Status probe(std::string&) override { return Status::ok; }
    Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                         Handle& handle) override {
        if (blob.size() != sizeof(Range)) return Status::invalid;
        auto range = std::make_unique<Range>();
        std::memcpy(range.get(), blob.data(), sizeof(Range));
        if (range->address != address || range->bytes != bytes) return Status::invalid;
        handle = range.get();
        imports_.push_back(std::move(range));
        return Status::ok;
    }
    void release(Handle handle) override {
        std::erase_if(imports_, [&](const auto& each) { return each.get() == handle; });
    }
    Status read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                Completion*) override {
        return move(process_vm_readv, handle, address, destination, bytes);
    }
    Status write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                 Completion*) override {
        return move(process_vm_writev, handle, address, const_cast<void*>(source), bytes);
    }
    unsigned progress() override { return 0; }
    int event_fd() const override { return event_; }
    Status arm() override { return Status::ok; }

  private:
    template <typename Call>
    Status move(Call call, Handle handle, std::uint64_t address, void* local, std::size_t bytes) {
        const auto& range = *static_cast<const Range*>(handle);
        if (address < range.address || address - range.address > range.bytes ||
            bytes > range.bytes - (address - range.address))
            return Status::access;
        const iovec here{local, bytes};
        const iovec there{reinterpret_cast<void*>(address), bytes};
        const ssize_t moved = call(static_cast<pid_t>(range.pid), &here, 1, &there, 1, 0);
        return moved == static_cast<ssize_t>(bytes) ? Status::ok : Status::access;
    }
    std::vector<std::unique_ptr<Range>> imports_;
    const int event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

class Export final : public memory::HostExport {
  public:
    explicit Export(const Range& range) { std::memcpy(blob_.data(), &range, sizeof range); }
    std::span<const std::byte> blob() const override { return blob_; }

  private:
    std::array<std::byte, sizeof(Range)> blob_{};
};

class Exporter final : public memory::HostExporter {
  public:
    Status export_region(void* address, std::size_t bytes, std::unique_ptr<memory::HostExport>& exported,
                         std::string& problem) override {
        problem = "the stand-in does not like this size";
        if (bytes == refused_bytes) return Status::unsupported;
        exported = std::make_unique<Export>(
            Range{static_cast<std::uint64_t>(getpid()), reinterpret_cast<std::uint64_t>(address), bytes});
        return Status::ok;
    }
};

}  // namespace

namespace ucx {

Status add_import_features(MemorySource, unsigned long&, std::string&) {
    return Status::ok;
}

ucs_status_t import_memory(ucp_context_h, MemorySource, std::span<const std::byte>, std::uint64_t,
                           std::uint64_t, Memory&) {
    return UCS_ERR_UNSUPPORTED;
}

}  // namespace ucx

ExportedMemoryProbe probe_exported_memory(const UcxConfig&) {
    return {true, true, "works: a stand-in for tests"};
}

Status open_device_memory(const UcxConfig&, std::unique_ptr<DeviceMemory>& memory, std::string&) {
    memory = std::make_unique<Device>();
    return Status::ok;
}

Status open_device_memory(Transport&, std::unique_ptr<DeviceMemory>& memory, std::string& problem) {
    return open_device_memory(UcxConfig{}, memory, problem);
}

Status open_host_exporter(const UcxConfig&, std::unique_ptr<memory::HostExporter>& exporter, std::string&) {
    exporter = std::make_unique<Exporter>();
    return Status::ok;
}

}  // namespace offpath::transport
