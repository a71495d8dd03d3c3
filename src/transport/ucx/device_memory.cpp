#include "base/log.h"
#include "transport/free_list.h"
#include "transport/ucx/exported_memory.h"
#include "transport/ucx/handles.h"
#include "transport/ucx/import.h"
#include "transport/ucx/status.h"
#include "transport/ucx/tuning.h"
#include "transport/ucx/worker.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

namespace offpath::transport {
namespace {

// Reads and writes go through an endpoint to this same worker: the network card moves the bytes between the
// host's memory, which the import's key names, and this process's memory.
class Device final : public DeviceMemory {
  public:
    // Without a context, open() makes one.
    explicit Device(const UcxConfig& config, ucx::SharedContext context = nullptr)
        : config_(config), of_fabric_(context != nullptr), context_(std::move(context)) {}
    ~Device() override;

    Status open(std::string& problem);

    Status probe(std::string& why_not) override;
    Status import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                         Handle& handle) override;
    void release(Handle handle) override;
    NetworkPlace place(Handle handle, std::uint64_t address) const override {
        if (!of_fabric_) return {};
        return {&static_cast<const Import*>(handle)->registration, address};
    }
    Status copy(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                Completion* completion) override;
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
        ucx::Registration registration;
        ~Import() {
            if (registration.key != nullptr) ucp_rkey_destroy(registration.key);
        }
    };
    struct DeviceOperation {
        Device* owner = nullptr;
        Completion* completion = nullptr;
        bool flushing = false;
    };

    static void on_moved(void* request, ucs_status_t status, void* operation);
    Status put(DeviceOperation* operation, const void* source, std::size_t bytes, std::uint64_t address,
               ucp_rkey_h rkey, const ucp_request_param_t& params);
    Status start(DeviceOperation* operation, ucs_status_ptr_t request);
    static ucp_request_param_t params_for(DeviceOperation* operation);
    void end(DeviceOperation* operation, Status status);

    const UcxConfig config_;
    const bool of_fabric_;
    ucx::SharedContext context_;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h self_ = nullptr;
    int event_fd_ = -1;
    std::vector<std::unique_ptr<Import>> imports_;
    FreeList<DeviceOperation> operations_;
    std::size_t out_ = 0;
};

Status Device::open(std::string& problem) {
    if (!of_fabric_) {
        unsigned long features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
        if (const Status status = ucx::add_import_features(config_.imports, features, problem);
            status != Status::ok)
            return status;
        context_ = ucx::open_context(config_, features, problem);
        if (!context_) return Status::unavailable;
    }
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

Status Device::import_region(std::span<const std::byte> blob, std::uint64_t address, std::uint64_t bytes,
                             Handle& handle) {
    if (bytes == 0 || address + bytes < address) return Status::invalid;
    if (blob.empty() && config_.imports == MemorySource::exported) return Status::invalid;
    auto import = std::make_unique<Import>();
    ucs_status_t status =
        ucx::import_memory(context_.get(), config_.imports, blob, address, bytes, import->memory);
    if (status != UCS_OK) {
        log::error(Code::exported_memory, "cannot import {} bytes of host memory: {}", bytes,
                   ucs_status_string(status));
        return ucx::from_ucs(status);
    }
    import->registration = {context_.get(), import->memory.get(), address, bytes, nullptr};
    void* packed = nullptr;
    std::size_t packed_bytes = 0;
    status = ucp_rkey_pack(context_.get(), import->memory.get(), &packed, &packed_bytes);
    if (status == UCS_OK) {
        status = ucp_ep_rkey_unpack(self_, packed, &import->registration.key);
        if (status != UCS_OK) import->registration.key = nullptr;
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

ucp_request_param_t Device::params_for(DeviceOperation* operation) {
    ucp_request_param_t params = ucx::host_memory_params(operation);
    params.cb.send = &Device::on_moved;
    return params;
}

Status Device::read(Handle handle, std::uint64_t address, void* destination, std::size_t bytes,
                    Completion* completion) {
    const auto& import = *static_cast<Import*>(handle);
    if (!import.registration.holds(address, bytes)) return Status::access;
    DeviceOperation* operation = operations_.take();
    *operation = {this, completion, true};
    const ucp_request_param_t params = params_for(operation);
    return start(operation,
                 ucp_get_nbx(self_, destination, bytes, address, import.registration.key, &params));
}

// A put is done when its bytes are visible in the host's memory, which is after a flush.
Status Device::write(Handle handle, std::uint64_t address, const void* source, std::size_t bytes,
                     Completion* completion) {
    const auto& import = *static_cast<Import*>(handle);
    if (!import.registration.holds(address, bytes)) return Status::access;
    DeviceOperation* operation = operations_.take();
    *operation = {this, completion, false};
    return put(operation, source, bytes, address, import.registration.key, params_for(operation));
}

// The card moves the bytes from one host's memory to another's.
Status Device::copy(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                    Completion* completion) {
    const ucx::Registration* const source = ucx::Registration::of(from, bytes, context_.get());
    const ucx::Registration* const target = ucx::Registration::of(to, bytes, context_.get());
    if (source == nullptr || target == nullptr) return Status::access;
    DeviceOperation* operation = operations_.take();
    *operation = {this, completion, false};
    ucp_request_param_t params = ucx::network_params(*source, operation);
    params.cb.send = &Device::on_moved;
    return put(operation, reinterpret_cast<const void*>(from.address), bytes, to.address, target->key,
               params);
}

Status Device::put(DeviceOperation* operation, const void* source, std::size_t bytes, std::uint64_t address,
                   ucp_rkey_h rkey, const ucp_request_param_t& params) {
    void* request = ucp_put_nbx(self_, source, bytes, address, rkey, &params);
    if (request != nullptr) return start(operation, request);
    operation->flushing = true;
    const ucp_request_param_t flush = params_for(operation);
    return start(operation, ucp_ep_flush_nbx(self_, &flush));
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
        const ucp_request_param_t params = params_for(ours);
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

namespace {

Status open(std::unique_ptr<Device> device, std::unique_ptr<DeviceMemory>& memory, std::string& problem) {
    if (Status status = device->open(problem); status != Status::ok) return status;
    memory = std::move(device);
    return Status::ok;
}

}  // namespace

Status open_device_memory(const UcxConfig& config, std::unique_ptr<DeviceMemory>& memory,
                          std::string& problem) {
    return open(std::make_unique<Device>(config), memory, problem);
}

Status open_device_memory(Transport& fabric, std::unique_ptr<DeviceMemory>& memory, std::string& problem) {
    auto& ours = static_cast<ucx::UcxTransport&>(fabric);
    return open(std::make_unique<Device>(ours.config(), ours.context()), memory, problem);
}

}  // namespace offpath::transport
