#include "base/log.h"
#include "transport/free_list.h"
#include "transport/ucx/exported_memory.h"
#include "transport/ucx/handles.h"
#include "transport/ucx/status.h"
#include "transport/ucx/tuning.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

namespace offpath::transport {
namespace {

// Reads and writes go through an endpoint to this same worker: the network card moves the bytes between the
// host's memory, which the import's key names, and this process's memory.
class Device final : public DeviceMemory {
  public:
    Device(const UcxConfig& config, MemorySource source) : config_(config), source_(source) {}
    ~Device() override;

    Status open(std::string& problem);

    Status probe(std::string& why_not) override;
    Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                         Handle& handle) override;
    void release(Handle handle) override;
    Status read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                Completion* completion) override;
    Status write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                 Completion* completion) override;

    unsigned progress() override;
    int event_fd() const override { return event_fd_; }
    Status arm() override;

  private:
    struct Import {
        ucx::Memory memory;
        ucp_rkey_h rkey = nullptr;
        std::uint64_t address = 0, bytes = 0;
        ~Import() {
            if (rkey) ucp_rkey_destroy(rkey);
        }
        bool holds(std::uint64_t first, std::size_t length) const {
            return first >= address && length <= bytes && first - address <= bytes - length;
        }
    };
    struct DeviceOperation {
        Device* owner = nullptr;
        Completion* completion = nullptr;
        bool flushing = false;
    };

    static void on_moved(void* request, ucs_status_t status, void* operation);
    Status map(std::span<const std::byte> blob, Import& import);
    Status start(DeviceOperation* operation, ucs_status_ptr_t request);
    ucp_request_param_t params_for(DeviceOperation* operation) const;
    void end(DeviceOperation* operation, Status status);

    const UcxConfig config_;
    const MemorySource source_;
    ucx::Context context_;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h self_ = nullptr;
    int event_fd_ = -1;
    std::vector<std::unique_ptr<Import>> imports_;
    FreeList<DeviceOperation> operations_;
    std::size_t out_ = 0;
};

Status Device::open(std::string& problem) {
    unsigned long features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    if (source_ == MemorySource::exported) {
#ifdef OFFPATH_UCX_EXPORTED_MEMORY
        features |= UCP_FEATURE_EXPORTED_MEMH;
#else
        problem = "this was built with a UCX before 1.14, which has no exported memory handles";
        return Status::unsupported;
#endif
    }
    context_ = ucx::open_context(config_, features, problem);
    if (!context_) return Status::unavailable;
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucs_status_t status = ucp_worker_create(context_.get(), &params, &worker_);
    if (status != UCS_OK) worker_ = nullptr;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    if (status == UCS_OK) status = ucp_worker_get_efd(worker_, &event_fd_);
    if (status == UCS_OK) status = ucp_worker_get_address(worker_, &address, &bytes);
    if (status == UCS_OK) {
        ucp_ep_params_t ep{};
        ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        ep.address = address;
        status = ucp_ep_create(worker_, &ep, &self_);
        ucp_worker_release_address(worker_, address);
    }
    if (status == UCS_OK) return Status::ok;
    problem = fmt::format("no network device that reaches exported memory ({}): {}", ucx::choice_of(config_),
                          ucs_status_string(status));
    return status == UCS_ERR_UNREACHABLE || status == UCS_ERR_UNSUPPORTED ? Status::unsupported
                                                                          : Status::unavailable;
}

Device::~Device() {
    if (!worker_) return;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
    while (out_ > 0 && in_time())
        ucp_worker_progress(worker_);
    imports_.clear();
    if (self_) {
        ucp_request_param_t none{};
        void* request = ucp_ep_close_nbx(self_, &none);
        if (UCS_PTR_IS_PTR(request)) {
            while (ucp_request_check_status(request) == UCS_INPROGRESS && in_time())
                ucp_worker_progress(worker_);
            ucp_request_free(request);
        }
    }
    ucp_worker_destroy(worker_);
}

Status Device::probe(std::string& why_not) {
    const ExportedMemoryProbe probe = probe_exported_memory(config_);
    if (probe.works) return Status::ok;
    why_not = probe.result;
    return Status::unsupported;
}

Status Device::map([[maybe_unused]] std::span<const std::byte> blob, Import& import) {
    ucp_mem_map_params_t params{};
    if (source_ == MemorySource::own_process) {
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = reinterpret_cast<void*>(import.address);
        params.length = import.bytes;
    } else {
#ifdef OFFPATH_UCX_EXPORTED_MEMORY
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
        params.exported_memh_buffer = blob.data();
#endif
    }
    if (ucs_status_t status = import.memory.map(context_.get(), params); status != UCS_OK) {
        log::error(Code::exported_memory, "cannot import {} bytes of host memory: {}", import.bytes,
                   ucs_status_string(status));
        return ucx::from_ucs(status);
    }
    return Status::ok;
}

Status Device::import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                             Handle& handle) {
    if (bytes == 0 || address + bytes < address) return Status::invalid;
    if (blob.empty() && source_ == MemorySource::exported) return Status::invalid;
    auto import = std::make_unique<Import>();
    import->address = address;
    import->bytes = bytes;
    if (Status status = map(blob, *import); status != Status::ok) return status;
    void* packed = nullptr;
    std::size_t packed_bytes = 0;
    ucs_status_t status = ucp_rkey_pack(context_.get(), import->memory.get(), &packed, &packed_bytes);
    if (status == UCS_OK) {
        status = ucp_ep_rkey_unpack(self_, packed, &import->rkey);
        if (status != UCS_OK) import->rkey = nullptr;
        ucp_rkey_buffer_release(packed);
    }
    if (status != UCS_OK) {
        log::error(Code::exported_memory, "cannot reach imported host memory: {}", ucs_status_string(status));
        return ucx::from_ucs(status);
    }
    handle = import.get();
    imports_.push_back(std::move(import));
    return Status::ok;
}

void Device::release(Handle handle) {
    std::erase_if(imports_, [&](const auto& import) { return import.get() == handle; });
}

ucp_request_param_t Device::params_for(DeviceOperation* operation) const {
    ucp_request_param_t params = ucx::host_memory_params(operation);
    params.cb.send = &Device::on_moved;
    return params;
}

Status Device::read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                    Completion* completion) {
    const auto& import = *static_cast<Import*>(handle);
    if (!import.holds(address, bytes)) return Status::access;
    DeviceOperation* operation = operations_.take();
    *operation = {this, completion, true};
    const ucp_request_param_t params = params_for(operation);
    return start(operation, ucp_get_nbx(self_, destination, bytes, address, import.rkey, &params));
}

// A put is done when its bytes are visible in the host's memory, which is after a flush.
Status Device::write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                     Completion* completion) {
    const auto& import = *static_cast<Import*>(handle);
    if (!import.holds(address, bytes)) return Status::access;
    DeviceOperation* operation = operations_.take();
    *operation = {this, completion, false};
    const ucp_request_param_t params = params_for(operation);
    void* request = ucp_put_nbx(self_, source, bytes, address, import.rkey, &params);
    if (request != nullptr) return start(operation, request);
    operation->flushing = true;
    return start(operation, ucp_ep_flush_nbx(self_, &params));
}

Status Device::start(DeviceOperation* operation, ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) {
        ++out_;
        return Status::in_progress;
    }
    operations_.give_back(operation);
    return ucx::from_ucs(UCS_PTR_STATUS(request));
}

void Device::on_moved(void* request, ucs_status_t status, void* operation) {
    auto* ours = static_cast<DeviceOperation*>(operation);
    Device& owner = *ours->owner;
    ucp_request_free(request);
    if (status == UCS_OK && !ours->flushing) {
        ours->flushing = true;
        const ucp_request_param_t params = owner.params_for(ours);
        void* flush = ucp_ep_flush_nbx(owner.self_, &params);
        if (UCS_PTR_IS_PTR(flush)) return;
        status = UCS_PTR_STATUS(flush);
    }
    owner.end(ours, ucx::from_ucs(status));
}

void Device::end(DeviceOperation* operation, Status status) {
    Completion* completion = operation->completion;
    --out_;
    operations_.give_back(operation);
    (*completion)(status);
}

unsigned Device::progress() {
    return ucp_worker_progress(worker_);
}

Status Device::arm() {
    const ucs_status_t status = ucp_worker_arm(worker_);
    if (status == UCS_OK) return Status::ok;
    return status == UCS_ERR_BUSY ? Status::retry : Status::system;
}

}  // namespace

Status open_device_memory(const UcxConfig& config, MemorySource source, std::unique_ptr<DeviceMemory>& memory,
                          std::string& problem) {
    auto device = std::make_unique<Device>(config, source);
    if (Status status = device->open(problem); status != Status::ok) return status;
    memory = std::move(device);
    return Status::ok;
}

}  // namespace offpath::transport
