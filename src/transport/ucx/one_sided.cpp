#include "transport/ucx/one_sided.h"

#include "base/log.h"
#include "transport/free_list.h"
#include "transport/ucx/handles.h"
#include "transport/ucx/status.h"
#include "transport/ucx/tuning.h"
#include "transport/ucx/window_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

namespace offpath::transport {
namespace {

constexpr std::size_t cache_line = 64;
// UCX parses a remote key without knowing its length. So a key is copied into a buffer that has this many
// bytes more.
constexpr std::size_t key_margin = 4096;
// Memory is kept for this time after its window has ended: outstanding emulated puts are written without a
// check.
constexpr auto late_puts = std::chrono::seconds(10);

class UcxOneSided;

// A peer's memory, kept until UCX has released it.
struct Peer {
    UcxOneSided* owner = nullptr;
    ucp_ep_h ep = nullptr;  // null when closed
    ucp_rkey_h rkey = nullptr;
    std::uint64_t address = 0, bytes = 0;
    ucs_status_t error = UCS_OK;
    bool gone = false;  // its RemoteWindow has ended
    bool closing = false;
    std::size_t out = 0;  // operations that UCX has
    ~Peer() {
        if (rkey != nullptr) ucp_rkey_destroy(rkey);
    }
};

struct OneSidedOperation {
    Peer* peer = nullptr;
    Completion* completion = nullptr;  // null: a put
    ucs_status_t status = UCS_INPROGRESS;
    std::array<std::byte, OneSided::max_put> source;
};

class UcxOneSided final : public OneSided {
  public:
    ~UcxOneSided() override;
    Status open(const UcxConfig& config, std::string& problem);

    Status offer(std::size_t bytes, std::unique_ptr<Window>& window) override;
    Status attach(std::span<const std::byte> key, std::unique_ptr<RemoteWindow>& window) override;
    unsigned progress() override {
        if (!retired_.empty() && (++rounds_ & 1023) == 0) free_retired();
        return ucp_worker_progress(worker_);
    }
    int event_fd() const override { return event_fd_; }
    Status arm() override;
    std::string describe() const override {
        return fmt::format("{}", fmt::join(ucx::resources_of(context_.get()), " "));
    }

    Status put(Peer& peer, std::uint64_t offset, std::span<const std::byte> source);
    Status flush(Peer& peer, Completion* completion);
    void release(Peer& peer);
    void retire(ucx::Memory memory) { retired_.push_back({Clock::now(), std::move(memory)}); }

  private:
    using Clock = std::chrono::steady_clock;
    struct Retired {
        Clock::time_point since;
        ucx::Memory memory;
    };
    void free_retired() {
        while (!retired_.empty() && Clock::now() - retired_.front().since > late_puts)
            retired_.pop_front();
    }

    static void on_error(void* peer, ucp_ep_h, ucs_status_t status) {
        if (static_cast<Peer*>(peer)->error == UCS_OK) static_cast<Peer*>(peer)->error = status;
    }
    static void on_done(void* request, ucs_status_t status, void* operation);
    static void on_closed(void* request, ucs_status_t status, void* peer);
    OneSidedOperation* begin(Peer& peer, Completion* completion);
    static ucp_request_param_t params_for(OneSidedOperation* operation);
    Status begun(OneSidedOperation* operation, void* request);
    void forget_if_over(Peer& peer);

    ucx::Context context_;
    ucp_worker_h worker_ = nullptr;
    int event_fd_ = -1;
    std::vector<std::byte> address_;
    std::deque<Retired> retired_;
    unsigned rounds_ = 0;
    std::vector<std::unique_ptr<Peer>> peers_;
    FreeList<OneSidedOperation> operations_;
    OneSidedOperation* calling_ = nullptr;  // passed to UCX by a call that has not returned
};

class OwnWindow final : public Window {
  public:
    OwnWindow(UcxOneSided& owner, ucx::Memory memory, std::span<std::byte> bytes, std::vector<std::byte> key)
        : owner_(owner), memory_(std::move(memory)), bytes_(bytes), key_(std::move(key)) {}
    ~OwnWindow() override { owner_.retire(std::move(memory_)); }
    std::span<std::byte> memory() override { return bytes_; }
    std::vector<std::byte> key() const override { return key_; }

  private:
    UcxOneSided& owner_;
    ucx::Memory memory_;
    std::span<std::byte> bytes_;
    std::vector<std::byte> key_;
};

class PeerWindow final : public RemoteWindow {
  public:
    explicit PeerWindow(Peer& peer) : peer_(peer) {}
    ~PeerWindow() override { peer_.owner->release(peer_); }
    std::size_t bytes() const override { return peer_.bytes; }
    Status put(std::uint64_t offset, std::span<const std::byte> source) override {
        return peer_.owner->put(peer_, offset, source);
    }
    Status flush(Completion* completion) override { return peer_.owner->flush(peer_, completion); }

  private:
    Peer& peer_;
};

Status UcxOneSided::open(const UcxConfig& config, std::string& problem) {
    context_ = ucx::open_context(config, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP, problem);
    if (!context_) return Status::unavailable;
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = config.several_threads ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
    ucs_status_t status = ucp_worker_create(context_.get(), &params, &worker_);
    if (status != UCS_OK) worker_ = nullptr;
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    if (status == UCS_OK) status = ucp_worker_get_efd(worker_, &event_fd_);
    if (status == UCS_OK) status = ucp_worker_get_address(worker_, &address, &bytes);
    if (status != UCS_OK) {
        problem = fmt::format("UCX cannot set a worker for remote memory up ({}): {}", ucx::choice_of(config),
                              ucs_status_string(status));
        return Status::unavailable;
    }
    const auto* const first = reinterpret_cast<const std::byte*>(address);
    address_.assign(first, first + bytes);
    ucp_worker_release_address(worker_, address);
    return Status::ok;
}

UcxOneSided::~UcxOneSided() {
    if (worker_ == nullptr) return;
    std::vector<Peer*> left;
    for (const auto& peer : peers_)
        left.push_back(peer.get());
    for (Peer* const peer : left)
        release(*peer);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (!peers_.empty() && std::chrono::steady_clock::now() < deadline)
        ucp_worker_progress(worker_);
    if (!peers_.empty())
        log::warn(Code::network_end, "UCX did not let go of {} remote windows within a second",
                  peers_.size());
    for (const auto& peer : peers_)
        if (peer->rkey != nullptr) ucp_rkey_destroy(std::exchange(peer->rkey, nullptr));
    ucp_worker_destroy(worker_);
}

Status UcxOneSided::arm() {
    const ucs_status_t status = ucp_worker_arm(worker_);
    if (status == UCS_OK) return Status::ok;
    return status == UCS_ERR_BUSY ? Status::retry : Status::system;
}

// UCX allocates the memory, because shared memory can be written passively only if a transport has allocated
// it.
Status UcxOneSided::offer(std::size_t bytes, std::unique_ptr<Window>& window) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = bytes + cache_line;
    params.flags = UCP_MEM_MAP_ALLOCATE;
    ucx::Memory memory;
    if (memory.map(context_.get(), params) != UCS_OK) return Status::memory;
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    if (ucp_mem_query(memory.get(), &attributes) != UCS_OK) return Status::system;
    void* start = attributes.address;
    std::size_t room = params.length;
    if (std::align(cache_line, bytes, start, room) == nullptr) return Status::system;
    std::memset(start, 0, bytes);

    void* packed = nullptr;
    std::size_t packed_bytes = 0;
    if (ucp_rkey_pack(context_.get(), memory.get(), &packed, &packed_bytes) != UCS_OK) return Status::system;
    ucx::WindowKey key;
    key.worker = address_;
    key.rkey = {static_cast<const std::byte*>(packed), packed_bytes};
    key.address = reinterpret_cast<std::uint64_t>(start);
    key.bytes = bytes;
    auto sealed = ucx::seal_window_key(key, ucx::loaded_version());
    ucp_rkey_buffer_release(packed);
    window = std::make_unique<OwnWindow>(*this, std::move(memory),
                                         std::span(static_cast<std::byte*>(start), bytes), std::move(sealed));
    return Status::ok;
}

Status UcxOneSided::attach(std::span<const std::byte> bytes, std::unique_ptr<RemoteWindow>& window) {
    ucx::WindowKey key;
    if (const Status status = ucx::open_window_key(bytes, ucx::loaded_version(), key); status != Status::ok)
        return status;
    auto peer = std::make_unique<Peer>();
    peer->owner = this;
    peer->address = key.address;
    peer->bytes = key.bytes;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(key.worker.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &UcxOneSided::on_error;
    params.err_handler.arg = peer.get();
    if (ucp_ep_create(worker_, &params, &peer->ep) != UCS_OK) return Status::unavailable;
    std::vector<std::byte> rkey(key.rkey.size() + key_margin);
    std::ranges::copy(key.rkey, rkey.begin());
    const ucs_status_t status = ucp_ep_rkey_unpack(peer->ep, rkey.data(), &peer->rkey);
    if (status != UCS_OK) peer->rkey = nullptr;
    Peer& made = *peers_.emplace_back(std::move(peer));
    if (status != UCS_OK) {
        release(made);
        return Status::unavailable;
    }
    window = std::make_unique<PeerWindow>(made);
    return Status::ok;
}

ucp_request_param_t UcxOneSided::params_for(OneSidedOperation* operation) {
    ucp_request_param_t params = ucx::host_memory_params(operation);
    params.cb.send = &UcxOneSided::on_done;
    return params;
}

Status UcxOneSided::put(Peer& peer, std::uint64_t offset, std::span<const std::byte> source) {
    if (source.size() > max_put || offset > peer.bytes || source.size() > peer.bytes - offset)
        return Status::invalid;
    if (peer.ep == nullptr || peer.error != UCS_OK) return Status::peer_lost;
    OneSidedOperation* const operation = begin(peer, nullptr);
    std::ranges::copy(source, operation->source.begin());
    const ucp_request_param_t params = params_for(operation);
    const Status status = begun(operation, ucp_put_nbx(peer.ep, operation->source.data(), source.size(),
                                                       peer.address + offset, peer.rkey, &params));
    return status == Status::in_progress ? Status::ok : status;
}

Status UcxOneSided::flush(Peer& peer, Completion* completion) {
    if (peer.ep == nullptr || peer.error != UCS_OK) return Status::peer_lost;
    OneSidedOperation* const operation = begin(peer, completion);
    const ucp_request_param_t params = params_for(operation);
    return begun(operation, ucp_ep_flush_nbx(peer.ep, &params));
}

OneSidedOperation* UcxOneSided::begin(Peer& peer, Completion* completion) {
    OneSidedOperation* const operation = operations_.take();
    operation->peer = &peer;
    operation->completion = completion;
    operation->status = UCS_INPROGRESS;
    calling_ = operation;
    return operation;
}

// UCX may complete the operation inside the call, by callback or by its return value. Then this returns the
// status of the operation.
Status UcxOneSided::begun(OneSidedOperation* operation, void* request) {
    calling_ = nullptr;
    if (UCS_PTR_IS_PTR(request) && operation->status == UCS_INPROGRESS) {
        ++operation->peer->out;
        return Status::in_progress;
    }
    const ucs_status_t status = UCS_PTR_IS_PTR(request) ? operation->status : UCS_PTR_RAW_STATUS(request);
    operations_.give_back(operation);
    return ucx::from_ucs(status);
}

void UcxOneSided::on_done(void* request, ucs_status_t status, void* operation) {
    auto* const ours = static_cast<OneSidedOperation*>(operation);
    Peer& peer = *ours->peer;
    ucp_request_free(request);
    if (peer.owner->calling_ == ours) {
        ours->status = status;
        return;
    }
    Completion* const completion = peer.gone ? nullptr : ours->completion;
    peer.owner->operations_.give_back(ours);
    --peer.out;
    if (status != UCS_OK && peer.error == UCS_OK) peer.error = status;
    if (completion != nullptr)
        (*completion)(ucx::from_ucs(peer.error));
    else
        peer.owner->forget_if_over(peer);
}

void UcxOneSided::release(Peer& peer) {
    peer.gone = true;
    if (peer.ep != nullptr) {
        ucp_request_param_t params{};
        params.op_attr_mask =
            UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        params.flags = UCP_EP_CLOSE_FLAG_FORCE;
        params.cb.send = &UcxOneSided::on_closed;
        params.user_data = &peer;
        peer.closing = true;
        void* const request = ucp_ep_close_nbx(std::exchange(peer.ep, nullptr), &params);
        if (!UCS_PTR_IS_PTR(request)) peer.closing = false;
    }
    forget_if_over(peer);
}

void UcxOneSided::on_closed(void* request, ucs_status_t, void* peer) {
    auto& ours = *static_cast<Peer*>(peer);
    ucp_request_free(request);
    ours.closing = false;
    ours.owner->forget_if_over(ours);
}

void UcxOneSided::forget_if_over(Peer& peer) {
    if (!peer.gone || peer.closing || peer.ep != nullptr || peer.out > 0) return;
    std::erase_if(peers_, [&](const auto& each) { return each.get() == &peer; });
}

// Puts into a window of a second worker. That worker first progresses to make the window known, then stops.
bool try_passive(const UcxConfig& config, std::string& note) {
    using Clock = std::chrono::steady_clock;
    UcxOneSided writer, target;
    if (writer.open(config, note) != Status::ok || target.open(config, note) != Status::ok) return false;
    std::unique_ptr<Window> window;
    std::unique_ptr<RemoteWindow> remote;
    if (target.offer(cache_line, window) != Status::ok ||
        writer.attach(window->key(), remote) != Status::ok) {
        note = fmt::format("no remote memory with {}", writer.describe());
        return false;
    }
    const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(window->memory().data()));
    const auto arrives = [&](std::uint32_t value, bool target_too, std::chrono::milliseconds limit) {
        std::array<std::byte, sizeof value> bytes;
        std::memcpy(bytes.data(), &value, sizeof value);
        if (remote->put(0, bytes) != Status::ok) return false;
        const auto deadline = Clock::now() + limit;
        while (word.load(std::memory_order_acquire) != value) {
            if (Clock::now() > deadline) return false;
            writer.progress();
            if (target_too) target.progress();
            std::this_thread::yield();
        }
        return true;
    };
    using std::chrono::milliseconds;
    const bool works = arrives(1, true, milliseconds(500));
    const bool passive = works && arrives(2, false, milliseconds(20));
    note = fmt::format("{} with {}",
                       passive ? "passive"
                       : works ? "not passive"
                               : "no puts",
                       writer.describe());
    // Emulated puts must be answered before the window ends.
    for (const auto end = Clock::now() + milliseconds(50); works && !passive && Clock::now() < end;) {
        writer.progress();
        target.progress();
    }
    remote.reset();
    return passive;
}

}  // namespace

Status make_ucx_one_sided(const UcxConfig& config, std::unique_ptr<OneSided>& one_sided,
                          std::string& problem) {
    auto made = std::make_unique<UcxOneSided>();
    if (const Status status = made->open(config, problem); status != Status::ok) return status;
    one_sided = std::move(made);
    return Status::ok;
}

bool puts_are_passive(const UcxConfig& config, std::string& note) {
    return try_passive(config, note);
}

}  // namespace offpath::transport
