#include "transport/ucx/ucx_transport.h"

#include "base/log.h"
#include "transport/loopback/loopback.h"
#include "transport/ucx/address.h"
#include "transport/ucx/import.h"
#include "transport/ucx/worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace offpath::transport {
namespace ucx {
namespace {

// Transports that do not reach other nodes, or reach them as a byte stream.
constexpr std::string_view streams_and_memory[] = {"tcp/", "self/", "posix/", "sysv/",
                                                   "cma/", "knem/", "xpmem/"};

// Connects the UCX transports of this process with each other.
LoopbackHub& process_hub() {
    static LoopbackHub hub([] {
        LoopbackConfig config;
        config.eager_bytes = Transport::max_post;
        return config;
    }());
    return hub;
}

}  // namespace

Status UcxTransport::open(std::string& problem) {
    unsigned long features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    if (const Status status = add_import_features(config_.imports, features, problem); status != Status::ok)
        return status;
    if (config_.imports != MemorySource::none) config_.in_process = false;
    context_ = open_context(config_, features, problem);
    if (!context_) return Status::unavailable;

    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = config_.several_threads ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
    ucs_status_t status = ucp_worker_create(context_.get(), &params, &worker_);
    if (status != UCS_OK) {
        worker_ = nullptr;
        problem =
            fmt::format("UCX cannot open a worker ({}): {}", choice_of(config_), ucs_status_string(status));
        return Status::unavailable;
    }

    ucp_am_handler_param_t handler{};
    handler.field_mask =
        UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = am_id;
    handler.cb = &UcxTransport::on_am;
    handler.arg = this;
    status = ucp_worker_set_am_recv_handler(worker_, &handler);
    int worker_fd = -1;
    if (status == UCS_OK) status = ucp_worker_get_efd(worker_, &worker_fd);
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    if (status == UCS_OK) status = ucp_worker_query(worker_, &attributes);
    if (status != UCS_OK) {
        problem = fmt::format("UCX cannot set its worker up: {}", ucs_status_string(status));
        return Status::unavailable;
    }
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    local_ = process_hub().join();
    local_->set_handler(this);
    const auto local_address = local_->address();
    Address address;
    address.worker = {reinterpret_cast<const std::byte*>(attributes.address), attributes.address_length};
    if (config_.in_process) address.local = local_address;
    address.process = self_;
    address_ = seal_address(address, static_cast<std::uint16_t>(major << 8 | minor));
    ucp_worker_release_address(worker_, attributes.address);
    if (attributes.max_am_header < max_wire_header) {
        problem = fmt::format("UCX's active messages take headers of {} bytes, {} are needed",
                              attributes.max_am_header, max_wire_header);
        return Status::unsupported;
    }
    event_fd_ = epoll_create1(EPOLL_CLOEXEC);
    for (int fd : {worker_fd, local_->event_fd(), watch_.fd()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (event_fd_ < 0 || epoll_ctl(event_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
            problem = fmt::format("epoll: {}", std::generic_category().message(errno));
            return Status::system;
        }
    }
    const auto resources = resources_of(context_.get());
    only_tcp_ = std::ranges::all_of(resources, [](const std::string& each) {
        return each.starts_with("tcp/") || each.starts_with("self/");
    });
    only_streams_ = std::ranges::all_of(resources, [](const std::string& each) {
        return std::ranges::any_of(streams_and_memory,
                                   [&](std::string_view name) { return each.starts_with(name); });
    });
    description_ = fmt::format("UCX {}.{}.{} {}", major, minor, release, fmt::join(resources, " "));
    return Status::ok;
}

UcxTransport::~UcxTransport() {
    if (event_fd_ >= 0) ::close(event_fd_);
    if (!worker_) return;
    using Clock = std::chrono::steady_clock;
    handler_ = nullptr;
    local_.reset();
    flush(Clock::now() + std::chrono::milliseconds(config_.drain_ms));
    while (Payload* payload = waiting_.first)
        discard(payload);
    for (auto& endpoint : endpoints_)
        close(*endpoint);
    // A forced close ends operations with an error. It needs progress on this side, but none on the other.
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    while ((closing_ > 0 || out_.first) && Clock::now() < deadline)
        ucp_worker_progress(worker_);
    // Discarding failed connections takes UCX further rounds.
    for (int quiet = 0; quiet < 64 && Clock::now() < deadline;)
        quiet = ucp_worker_progress(worker_) == 0 ? quiet + 1 : 0;
    if (closing_ > 0)
        log::warn(Code::network_end, "UCX did not let go of {} endpoints within a second", closing_);
    ucp_worker_destroy(worker_);
    for (const Deferred& late : std::exchange(deferred_, {}))
        (*late.completion)(Status::canceled);
    for (WorkerOperation* operation = out_.first; operation;) {
        WorkerOperation* next = operation->next;
        if (operation->completion) (*operation->completion)(Status::canceled);
        operation = next;
    }
}

// Gives posted messages time to leave. Failed endpoints have nothing to flush.
void UcxTransport::flush(std::chrono::steady_clock::time_point deadline) {
    ucp_request_param_t none{};
    void* request = ucp_worker_flush_nbx(worker_, &none);
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
        ucp_worker_progress(worker_);
    ucp_request_free(request);
}

Status UcxTransport::connect_local(std::span<const std::byte> address, Endpoint** endpoint) {
    auto made = std::make_unique<UcxEndpoint>();
    made->owner = this;
    if (Status status = local_->connect(address, &made->local); status != Status::ok) return status;
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

Status UcxTransport::connect(std::span<const std::byte> bytes, Endpoint** endpoint) {
    Address address;
    std::string problem;
    if (Status status = open_address(bytes, address, problem); status != Status::ok) {
        log::error(Code::no_way, "cannot connect: {}", problem);
        return status;
    }
    // UCX's own loopback has no error handling, and calls the handler inside post().
    if (std::ranges::equal(bytes, address_)) return connect_local(local_->address(), endpoint);
    if (config_.in_process && !address.local.empty() && address.process == self_)
        return connect_local(address.local, endpoint);

    auto made = std::make_unique<UcxEndpoint>();
    made->owner = this;
    if (config_.error_handling &&
        watch_.watch(address.process, made.get(), made->pidfd) == ProcessWatch::Seen::dead) {
        log::error(Code::no_way, "cannot connect: the peer, process {}, is gone", address.process.pid);
        return Status::peer_lost;
    }
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(address.worker.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    if (config_.error_handling) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = &UcxTransport::on_error;
        params.err_handler.arg = made.get();
    }
    if (ucs_status_t status = ucp_ep_create(worker_, &params, &made->ep); status != UCS_OK) {
        watch_.forget(made->pidfd);
        log::error(Code::no_way,
                   "cannot connect: the peer is gone or no transport leads to it ({}; here: {}): {}",
                   choice_of(config_), description_, ucs_status_string(status));
        return Status::unavailable;
    }
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

void UcxTransport::disconnect(Endpoint* endpoint) {
    auto& ours = static_cast<UcxEndpoint&>(*endpoint);
    std::erase(failed_, &ours);
    ours.disconnected = true;
    if (ours.local) local_->disconnect(std::exchange(ours.local, nullptr));
    close(ours);
    if (!ours.closing) closed(ours);
}

// Asks UCX to release the endpoint; on_closed follows, possibly at once.
void UcxTransport::close(UcxEndpoint& endpoint) {
    watch_.forget(std::exchange(endpoint.pidfd, -1));
    if (!endpoint.ep) return;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    // Without error handling UCX cannot close by force.
    param.flags = config_.error_handling ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    param.cb.send = &UcxTransport::on_closed;
    param.user_data = &endpoint;
    endpoint.closing = true;
    ++closing_;
    closing_call_ = true;
    void* request = ucp_ep_close_nbx(std::exchange(endpoint.ep, nullptr), &param);
    closing_call_ = false;
    if (UCS_PTR_IS_PTR(request)) return;
    --closing_;
    endpoint.closing = false;
}

void UcxTransport::on_closed(void* request, ucs_status_t, void* endpoint) {
    auto& ours = *static_cast<UcxEndpoint*>(endpoint);
    ucp_request_free(request);
    ours.closing = false;
    --ours.owner->closing_;
    if (ours.disconnected && !ours.owner->closing_call_) ours.owner->closed(ours);
}

void UcxTransport::closed(UcxEndpoint& endpoint) {
    std::erase_if(endpoints_, [&](const auto& each) { return each.get() == &endpoint; });
}

void UcxTransport::on_endpoint_lost(Endpoint& local) {
    for (auto& endpoint : endpoints_) {
        if (endpoint->local != &local) continue;
        if (handler_) handler_->on_endpoint_lost(*endpoint);
        return;
    }
}

void UcxTransport::on_error(void* endpoint, ucp_ep_h, ucs_status_t status) {
    auto& ours = *static_cast<UcxEndpoint*>(endpoint);
    if (ours.disconnected || ours.error != UCS_OK) return;
    ours.error = status;
    ours.owner->failed_.push_back(&ours);
}

// The called code may disconnect, send and fail again.
unsigned UcxTransport::run_deferred() {
    for (UcxEndpoint* endpoint : failed_) {
        if (endpoint->ep) log::info("an endpoint is lost: {}", ucs_status_string(endpoint->error));
        close(*endpoint);
    }
    running_.swap(deferred_);
    for (const Deferred& late : running_)
        (*late.completion)(late.status);
    unsigned events = static_cast<unsigned>(running_.size());
    running_.clear();
    while (!failed_.empty()) {
        UcxEndpoint* endpoint = failed_.front();
        close(*endpoint);
        failed_.erase(failed_.begin());
        if (handler_) handler_->on_endpoint_lost(*endpoint);
        ++events;
    }
    return events;
}

void UcxTransport::find_dead_processes() {
    while (void* token = watch_.dead()) {
        auto& endpoint = *static_cast<UcxEndpoint*>(token);
        watch_.forget(std::exchange(endpoint.pidfd, -1));
        on_error(&endpoint, endpoint.ep, UCS_ERR_CONNECTION_RESET);
    }
}

unsigned UcxTransport::progress() {
    if (in_progress_) return 0;
    // This is a system call, so it is not made in every round. arm() makes it too.
    if ((++rounds_ & 1023) == 0) find_dead_processes();
    in_progress_ = true;
    unsigned events = ucp_worker_progress(worker_);
    events += local_->progress();
    pace_.keep(event_fd_);
    if (!deferred_.empty() || !failed_.empty()) events += run_deferred();
    in_progress_ = false;
    return events;
}

Status UcxTransport::arm() {
    find_dead_processes();
    if (!deferred_.empty() || !failed_.empty()) return Status::retry;
    if (local_->arm() == Status::retry) return Status::retry;
    const ucs_status_t status = ucp_worker_arm(worker_);
    if (status == UCS_OK) return Status::ok;
    if (status == UCS_ERR_BUSY) return Status::retry;
    log::error(Code::resources, "UCX cannot arm its worker: {}", ucs_status_string(status));
    return Status::system;
}

}  // namespace ucx

Status make_ucx_transport(const UcxConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem) {
    auto made = std::make_unique<ucx::UcxTransport>(config);
    if (Status status = made->open(problem); status != Status::ok) return status;
    transport = std::move(made);
    return Status::ok;
}

}  // namespace offpath::transport
