#include "transport/ucx/exported_memory.h"
#include "transport/ucx/handles.h"
#include "transport/ucx/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace offpath::transport {

#ifdef OFFPATH_UCX_EXPORTED_MEMORY
// These are null in a process that has loaded a UCX of its own, older than 1.14, as MPICH does.
#pragma weak ucp_memh_pack
#pragma weak ucp_memh_buffer_release

namespace {

class Export final : public memory::HostExport {
  public:
    Export(ucx::Memory memory, void* buffer, std::size_t bytes)
        : memory_(std::move(memory)), buffer_(buffer), bytes_(bytes) {}
    ~Export() override {
        ucp_memh_buffer_release_params_t params{};
        ucp_memh_buffer_release(buffer_, &params);
    }
    std::span<const std::byte> blob() const override {
        return {static_cast<const std::byte*>(buffer_), bytes_};
    }

  private:
    ucx::Memory memory_;
    void* buffer_;
    std::size_t bytes_;
};

class Exporter final : public memory::HostExporter {
  public:
    explicit Exporter(ucx::Context context) : context_(std::move(context)) {}

    Status export_region(void* address, std::size_t bytes, std::unique_ptr<memory::HostExport>& exported,
                         std::string& problem) override {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = address;
        params.length = bytes;
        ucx::Memory memory;
        if (ucs_status_t status = memory.map(context_.get(), params); status != UCS_OK) {
            problem = fmt::format("UCX cannot register {} bytes: {}", bytes, ucs_status_string(status));
            return Status::memory;
        }
        ucp_memh_pack_params_t pack{};
        pack.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS;
        pack.flags = UCP_MEMH_PACK_FLAG_EXPORT;
        void* buffer = nullptr;
        std::size_t buffer_bytes = 0;
        const ucs_status_t status = ucp_memh_pack(memory.get(), &pack, &buffer, &buffer_bytes);
        if (status != UCS_OK) {
            problem = fmt::format("no memory domain here can export memory: {}", ucs_status_string(status));
            return status == UCS_ERR_UNSUPPORTED ? Status::unsupported : Status::system;
        }
        exported = std::make_unique<Export>(std::move(memory), buffer, buffer_bytes);
        return Status::ok;
    }

  private:
    ucx::Context context_;
};

}  // namespace

Status open_host_exporter(const UcxConfig& config, std::unique_ptr<memory::HostExporter>& exporter,
                          std::string& problem) {
    if (ucp_memh_pack == nullptr || ucp_memh_buffer_release == nullptr) {
        problem = "the UCX that this process has loaded is older than 1.14";
        return Status::unsupported;
    }
    ucx::Context context = ucx::open_context(config, UCP_FEATURE_RMA | UCP_FEATURE_EXPORTED_MEMH, problem);
    if (!context) return Status::unavailable;
    exporter = std::make_unique<Exporter>(std::move(context));
    return Status::ok;
}

ExportedMemoryProbe probe_exported_memory(const UcxConfig& config) {
    ExportedMemoryProbe probe;
    probe.compiled = true;
    std::string problem;
    std::unique_ptr<memory::HostExporter> exporter;
    const long page = sysconf(_SC_PAGESIZE);
    const std::unique_ptr<void, void (*)(void*)> memory(
        std::aligned_alloc(static_cast<std::size_t>(page), static_cast<std::size_t>(page)), &std::free);
    const auto try_all = [&]() -> Status {
        if (!memory) return Status::memory;
        if (Status status = open_host_exporter(config, exporter, problem); status != Status::ok)
            return status;
        std::unique_ptr<memory::HostExport> exported;
        Status status =
            exporter->export_region(memory.get(), static_cast<std::size_t>(page), exported, problem);
        if (status != Status::ok) return status;
        std::unique_ptr<DeviceMemory> device;
        UcxConfig importing = config;
        importing.imports = MemorySource::exported;
        status = open_device_memory(importing, device, problem);
        if (status != Status::ok) return status;
        memory::ExportedMemory::Handle handle = nullptr;
        status = device->import_region(exported->blob(), reinterpret_cast<std::uint64_t>(memory.get()),
                                       static_cast<std::uint64_t>(page), handle);
        if (status == Status::ok)
            device->release(handle);
        else
            problem = "memory can be exported here, but not imported again";
        return status;
    };
    probe.works = try_all() == Status::ok;
    probe.result = probe.works ? "works: a page was exported and imported" : "unsupported: " + problem;
    return probe;
}

#else

Status open_host_exporter(const UcxConfig&, std::unique_ptr<memory::HostExporter>&, std::string& problem) {
    problem = "this was built with a UCX before 1.14, which has no exported memory handles";
    return Status::unsupported;
}

ExportedMemoryProbe probe_exported_memory(const UcxConfig&) {
    ExportedMemoryProbe probe;
    probe.result = "unsupported: built with a UCX before 1.14, which has no exported memory handles";
    return probe;
}

#endif

}  // namespace offpath::transport
