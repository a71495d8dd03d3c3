#include "transport/ucx/ucx_transport.h"

#include "base/log.h"
#include "transport/free_list.h"
#include "transport/loopback/loopback.h"
#include "transport/ucx/address.h"
#include "transport/ucx/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

namespace offpath::transport {
namespace {

constexpr unsigned am_id = 1;

Status from_ucs(ucs_status_t status) {
    switch (status) {
        case UCS_OK:
            return Status::ok;
        case UCS_ERR_MESSAGE_TRUNCATED:
            return Status::truncated;
        case UCS_ERR_NO_MEMORY:
            return Status::memory;
        case UCS_ERR_INVALID_PARAM:
            return Status::invalid;
        case UCS_ERR_CANCELED:
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_ENDPOINT_TIMEOUT:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_REJECTED:
        case UCS_ERR_TIMED_OUT:
        case UCS_ERR_UNREACHABLE:
            return Status::peer_lost;
        default:
            return Status::system;
    }
}

// Joins the UCX transports of this process.
LoopbackHub& process_hub() {
    static LoopbackHub hub([] {
        LoopbackConfig config;
        config.eager_bytes = Transport::max_post;
        return config;
    }());
    return hub;
}

class UcxTransport;

struct UcxEndpoint final : Endpoint {
    UcxTransport* owner = nullptr;
    ucp_ep_h ep = nullptr;      // null when closed
    Endpoint* local = nullptr;  // the endpoint in the process's hub, when it leads there
    ucs_status_t error = UCS_OK;
    bool disconnected = false;  // delete when UCX has let go of it
    bool closing = false;
};

// An operation that UCX holds: UCX's user data. In a list while it is out, so that the destructor can end it.
struct Operation {
    UcxTransport* owner = nullptr;
    Completion* completion = nullptr;  // null: a post
    ucs_status_t status = UCS_INPROGRESS;
    Operation *previous = nullptr, *next = nullptr;
};

struct SendRecord : Operation {
    std::array<std::byte, Transport::max_header> header;
};

struct PostRecord : Operation {
    std::array<std::byte, Transport::max_header + Transport::max_post> bytes;
};

// A payload that waits at the sender until fetch() or discard().
struct Payload {
    void* descriptor = nullptr;  // UCX's, or the hub's
    std::size_t bytes = 0;
    bool local = false;
    Payload *previous = nullptr, *next = nullptr;
};

template <typename Node>
struct List {
    Node* first = nullptr;
    void add(Node* node) {
        node->previous = nullptr;
        node->next = first;
        if (first) first->previous = node;
        first = node;
    }
    void remove(Node* node) {
        (node->previous ? node->previous->next : first) = node->next;
        if (node->next) node->next->previous = node->previous;
    }
};

class UcxTransport final : public Transport, Handler {
  public:
    explicit UcxTransport(const UcxConfig& config) : config_(config) {}
    ~UcxTransport() override;

    Status open(std::string& problem);

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override { return address_; }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override;
    void disconnect(Endpoint* endpoint) override;
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    void discard(void* rendezvous) override;
    unsigned progress() override;
    int event_fd() const override { return event_fd_; }
    Status arm() override;
    std::string describe() const override { return description_; }

  private:
    struct Deferred {
        Completion* completion;
        Status status;
    };

    // What the process's hub hands over.
    void on_message(const Incoming& message) override;
    void on_endpoint_lost(Endpoint& local) override;

    static ucs_status_t on_am(void* self, const void* header, std::size_t header_bytes, void* data,
                              std::size_t bytes, const ucp_am_recv_param_t* param);
    static void on_error(void* endpoint, ucp_ep_h ep, ucs_status_t status);
    static void on_posted(void* request, ucs_status_t status, void* record);
    static void on_sent(void* request, ucs_status_t status, void* record);
    static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* operation);
    template <typename Record>
    void over(Record* record, FreeList<Record>& home, ucs_status_t status);
    template <typename Record>
    void begin(Record* record, Completion* completion);
    template <typename Record>
    Status begun(Record* record, FreeList<Record>& home, void* request);
    static void on_closed(void* request, ucs_status_t status, void* endpoint);

    Status connect_local(std::span<const std::byte> address, Endpoint** endpoint);
    void finish(Completion* completion, Status status);
    void close(UcxEndpoint& endpoint);
    void closed(UcxEndpoint& endpoint);
    unsigned run_deferred();
    void flush(std::chrono::steady_clock::time_point deadline);

    UcxConfig config_;
    ucx::Context context_;
    ucp_worker_h worker_ = nullptr;
    std::vector<std::byte> address_;
    std::string description_;
    int event_fd_ = -1;  // an epoll set of UCX's and the hub's descriptors
    Handler* handler_ = nullptr;

    std::vector<std::unique_ptr<UcxEndpoint>> endpoints_;
    std::vector<UcxEndpoint*> failed_;  // on_endpoint_lost is due
    std::vector<Deferred> deferred_;    // completions that came outside progress()
    std::vector<Deferred> running_;
    FreeList<PostRecord> posts_;
    FreeList<SendRecord> sends_;
    FreeList<Operation> fetches_;
    FreeList<Payload> payloads_;
    List<Operation> out_;
    List<Payload> waiting_;
    std::unique_ptr<Transport> local_;
    bool in_progress_ = false;
    Operation* calling_ = nullptr;  // handed to UCX by a call that has not returned
    bool closing_call_ = false;     // UCX is closing an endpoint
    unsigned closing_ = 0;
};

// Around a call of UCX that may keep `record`. UCX may end the operation inside the call, by callback or by
// what it returns; then its status is the call's.
template <typename Record>
void UcxTransport::begin(Record* record, Completion* completion) {
    record->owner = this;
    record->completion = completion;
    record->status = UCS_INPROGRESS;
    calling_ = record;
}

template <typename Record>
Status UcxTransport::begun(Record* record, FreeList<Record>& home, void* request) {
    calling_ = nullptr;
    if (UCS_PTR_IS_PTR(request) && record->status == UCS_INPROGRESS) {
        out_.add(record);
        return Status::in_progress;
    }
    const ucs_status_t status = UCS_PTR_IS_PTR(request) ? record->status : UCS_PTR_RAW_STATUS(request);
    home.give_back(record);
    return from_ucs(status);
}

template <typename Record>
void UcxTransport::over(Record* record, FreeList<Record>& home, ucs_status_t status) {
    if (calling_ == record) {
        record->status = status;
        return;
    }
    Completion* completion = record->completion;
    out_.remove(record);
    home.give_back(record);
    if (completion) finish(completion, from_ucs(status));
}

Status UcxTransport::open(std::string& problem) {
    context_ = ucx::open_context(config_, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, problem);
    if (!context_) return Status::unavailable;

    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucs_status_t status = ucp_worker_create(context_.get(), &params, &worker_);
    if (status != UCS_OK) {
        worker_ = nullptr;
        problem = fmt::format("UCX cannot open a worker ({}): {}", ucx::choice_of(config_),
                              ucs_status_string(status));
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
    ucx::Address address;
    address.worker = {reinterpret_cast<const std::byte*>(attributes.address), attributes.address_length};
    if (config_.in_process) address.local = local_address;
    address.process = ucx::process_identity();
    address_ = ucx::seal_address(address, static_cast<std::uint16_t>(major << 8 | minor));
    ucp_worker_release_address(worker_, attributes.address);
    if (attributes.max_am_header < max_header) {
        problem = fmt::format("UCX's active messages take headers of {} bytes, {} are needed",
                              attributes.max_am_header, max_header);
        return Status::unsupported;
    }
    event_fd_ = epoll_create1(EPOLL_CLOEXEC);
    for (int fd : {worker_fd, local_->event_fd()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (event_fd_ < 0 || epoll_ctl(event_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
            problem = fmt::format("epoll: {}", std::generic_category().message(errno));
            return Status::system;
        }
    }
    description_ = fmt::format("UCX {}.{}.{} {}", major, minor, release,
                               fmt::join(ucx::resources_of(context_.get()), " "));
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
    // A forced close ends operations with an error; it needs progress here, none at the other side.
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    while ((closing_ > 0 || out_.first) && Clock::now() < deadline)
        ucp_worker_progress(worker_);
    if (closing_ > 0) log::warn("UCX did not let go of {} endpoints within a second", closing_);
    ucp_worker_destroy(worker_);
    for (const Deferred& late : std::exchange(deferred_, {}))
        (*late.completion)(Status::canceled);
    for (Operation* operation = out_.first; operation;) {
        Operation* next = operation->next;
        if (operation->completion) (*operation->completion)(Status::canceled);
        operation = next;
    }
}

// Gives what was posted a chance to leave. Endpoints that failed have nothing to flush.
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
    ucx::Address address;
    std::string problem;
    if (Status status = ucx::open_address(bytes, address, problem); status != Status::ok) {
        log::error("cannot connect: {}", problem);
        return status;
    }
    // UCX's own loopback knows no error handling, and calls the handler inside post().
    if (std::ranges::equal(bytes, address_)) return connect_local(local_->address(), endpoint);
    if (config_.in_process && !address.local.empty() && address.process == ucx::process_identity())
        return connect_local(address.local, endpoint);

    auto made = std::make_unique<UcxEndpoint>();
    made->owner = this;
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
        log::error("cannot connect: the peer is gone or no transport leads to it ({}; here: {}): {}",
                   ucx::choice_of(config_), description_, ucs_status_string(status));
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

// Asks UCX to let go of the endpoint; on_closed follows, perhaps at once.
void UcxTransport::close(UcxEndpoint& endpoint) {
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

Status UcxTransport::post(Endpoint& endpoint, std::span<const std::byte> header,
                          std::span<const std::byte> payload) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    if (header.size() > max_header || payload.size() > max_post) return Status::invalid;
    if (to.local) return local_->post(*to.local, header, payload);
    if (!to.ep || to.error != UCS_OK) return Status::peer_lost;

    PostRecord* record = posts_.take();
    std::memcpy(record->bytes.data(), header.data(), header.size());
    if (!payload.empty()) std::memcpy(record->bytes.data() + header.size(), payload.data(), payload.size());
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                         UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.cb.send = &UcxTransport::on_posted;
    param.user_data = record;
    begin(record, nullptr);
    void* request = ucp_am_send_nbx(to.ep, am_id, record->bytes.data(), header.size(),
                                    record->bytes.data() + header.size(), payload.size(), &param);
    const Status status = begun(record, posts_, request);
    return status == Status::in_progress ? Status::ok : status;
}
void UcxTransport::on_posted(void* request, ucs_status_t status, void* record) {
    auto* ours = static_cast<PostRecord*>(record);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->posts_, status);
}

Status UcxTransport::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, Completion* completion) {
    auto& to = static_cast<UcxEndpoint&>(endpoint);
    if (header.size() > max_header) return Status::invalid;
    if (to.local) return local_->send(*to.local, header, payload, bytes, completion);
    if (!to.ep || to.error != UCS_OK) return Status::peer_lost;

    SendRecord* record = sends_.take();
    std::memcpy(record->header.data(), header.data(), header.size());
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                         UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.flags =
        bytes > 0 && bytes >= config_.rendezvous_bytes ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.cb.send = &UcxTransport::on_sent;
    param.user_data = record;
    begin(record, completion);
    void* request =
        ucp_am_send_nbx(to.ep, am_id, record->header.data(), header.size(), payload, bytes, &param);
    return begun(record, sends_, request);
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* record) {
    auto* ours = static_cast<SendRecord*>(record);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->sends_, status);
}

Status UcxTransport::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    auto* payload = static_cast<Payload*>(rendezvous);
    if (bytes != payload->bytes) return Status::invalid;
    void* descriptor = payload->descriptor;
    waiting_.remove(payload);
    payloads_.give_back(payload);
    if (payload->local) return local_->fetch(descriptor, destination, bytes, completion);

    Operation* operation = fetches_.take();
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.cb.recv_am = &UcxTransport::on_fetched;
    param.user_data = operation;
    begin(operation, completion);
    void* request = ucp_am_recv_data_nbx(worker_, descriptor, destination, bytes, &param);
    return begun(operation, fetches_, request);
}

void UcxTransport::on_fetched(void* request, ucs_status_t status, std::size_t, void* operation) {
    auto* ours = static_cast<Operation*>(operation);
    ucp_request_free(request);
    ours->owner->over(ours, ours->owner->fetches_, status);
}

void UcxTransport::discard(void* rendezvous) {
    auto* payload = static_cast<Payload*>(rendezvous);
    waiting_.remove(payload);
    payloads_.give_back(payload);
    if (!payload->local)
        ucp_am_data_release(worker_, payload->descriptor);
    else if (local_)
        local_->discard(payload->descriptor);
}

ucs_status_t UcxTransport::on_am(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& ours = *static_cast<UcxTransport*>(self);
    if (!ours.handler_) return UCS_OK;
    Incoming message;
    message.header = {static_cast<const std::byte*>(header), header_bytes};
    message.bytes = bytes;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        static constexpr std::byte nothing{};
        message.data = data ? static_cast<const std::byte*>(data) : &nothing;
        ours.handler_->on_message(message);
        return UCS_OK;
    }
    Payload* payload = ours.payloads_.take();
    payload->descriptor = data;
    payload->bytes = bytes;
    payload->local = false;
    ours.waiting_.add(payload);
    message.rendezvous = payload;
    ours.handler_->on_message(message);
    return UCS_INPROGRESS;
}

void UcxTransport::on_message(const Incoming& message) {
    if (!handler_) return;
    if (!message.rendezvous) return handler_->on_message(message);
    Payload* payload = payloads_.take();
    payload->descriptor = message.rendezvous;
    payload->bytes = message.bytes;
    payload->local = true;
    waiting_.add(payload);
    Incoming ours = message;
    ours.rendezvous = payload;
    handler_->on_message(ours);
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

// Completions are called inside progress() only, so that callers of send() and disconnect() need not expect
// them there.
void UcxTransport::finish(Completion* completion, Status status) {
    if (in_progress_ && !calling_ && !closing_call_)
        (*completion)(status);
    else
        deferred_.push_back({completion, status});
}

// What is called here may disconnect, send and fail again.
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

unsigned UcxTransport::progress() {
    if (in_progress_) return 0;
    in_progress_ = true;
    unsigned events = ucp_worker_progress(worker_);
    events += local_->progress();
    if (!deferred_.empty() || !failed_.empty()) events += run_deferred();
    in_progress_ = false;
    return events;
}

Status UcxTransport::arm() {
    if (!deferred_.empty() || !failed_.empty()) return Status::retry;
    if (local_->arm() == Status::retry) return Status::retry;
    const ucs_status_t status = ucp_worker_arm(worker_);
    if (status == UCS_OK) return Status::ok;
    if (status == UCS_ERR_BUSY) return Status::retry;
    log::error("UCX cannot arm its worker: {}", ucs_status_string(status));
    return Status::system;
}

}  // namespace

Status make_ucx_transport(const UcxConfig& config, std::unique_ptr<Transport>& transport,
                          std::string& problem) {
    auto made = std::make_unique<UcxTransport>(config);
    if (Status status = made->open(problem); status != Status::ok) return status;
    transport = std::move(made);
    return Status::ok;
}

}  // namespace offpath::transport
