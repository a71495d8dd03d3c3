#include "transport/loopback/loopback.h"

#include "base/log.h"
#include "transport/free_list.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <system_error>
#include <unordered_map>

namespace offpath::transport {
namespace {

class Member;
using MemberId = std::uint64_t;

struct LoopbackEndpoint final : Endpoint {
    MemberId peer = 0;
    bool lost = false;
};

// A payload in its sender's memory. Dead: the sender no longer waits, and no receiver may access the bytes.
// Copying: a receiver reads it outside the mutex; the sender must not make it dead meanwhile.
struct Transfer {
    MemberId sender = 0, receiver = 0;
    Endpoint* endpoint = nullptr;  // the sender's
    const void* payload = nullptr;
    std::size_t bytes = 0;
    Completion* completion = nullptr;  // the sender's
    bool dead = false;
    bool copying = false;
};

struct Event {
    enum class Kind { message, completion, lost } kind = Kind::message;
    std::vector<std::byte> bytes;  // header, then an eager payload
    std::size_t header_bytes = 0, payload_bytes = 0;
    Transfer* transfer = nullptr;
    Completion* completion = nullptr;
    Status status = Status::ok;
    LoopbackEndpoint* endpoint = nullptr;
};

// The bytes of an address.
struct Address {
    char magic[4] = {'O', 'F', 'L', 'B'};
    std::uint32_t version = 1;
    std::uint64_t hub = 0;
    MemberId member = 0;
};

std::uint64_t next_hub_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

}  // namespace

struct LoopbackHub::Impl {
    explicit Impl(const LoopbackConfig& settings) : config(settings), random(settings.seed) {}

    const LoopbackConfig config;
    const std::uint64_t id = next_hub_id();
    std::mutex mutex;  // guards everything below, and the members' inboxes and endpoints
    std::mt19937_64 random;
    std::unordered_map<MemberId, Member*> members;
    MemberId last_member = 0;
    FreeList<Event> events;
    FreeList<Transfer> transfers;
    std::vector<Transfer*> open_transfers;  // neither fetched nor discarded
    std::condition_variable copied;
};

namespace {

class Member final : public Transport {
  public:
    Member(LoopbackHub::Impl& hub, MemberId id)
        : hub_(hub), id_(id), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (event_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    ~Member() override;

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override;
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
    std::string describe() const override { return "loopback"; }

  private:
    using Lock = std::unique_lock<std::mutex>;

    // All of these need the hub's mutex.
    Member* peer_of(Endpoint& endpoint);
    void push(Event* event);
    void push_message(Member& to, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                      Transfer* transfer);
    void push_completion(Completion* completion, Status status);
    void peer_died(MemberId peer);
    Event* pop();
    void finish_transfer(Transfer* transfer);
    // Releases the lock until no member reads a payload of this member.
    void wait_for_copies(Lock& lock);

    void dispatch(const Event& event);

    LoopbackHub::Impl& hub_;
    const MemberId id_;
    const int event_fd_;
    Handler* handler_ = nullptr;
    bool in_progress_ = false;
    // The length of inbox_, so that polling an empty one takes no lock.
    std::atomic<std::size_t> waiting_{0};
    // Needs the hub's mutex.
    bool armed_ = false;
    std::deque<Event*> inbox_;
    std::vector<std::unique_ptr<LoopbackEndpoint>> endpoints_;
};

Member::~Member() {
    std::vector<Completion*> canceled;
    {
        Lock lock(hub_.mutex);
        wait_for_copies(lock);
        hub_.members.erase(id_);
        for (Transfer* transfer : hub_.open_transfers) {
            if (transfer->sender == id_ && !transfer->dead) {
                transfer->dead = true;
                canceled.push_back(transfer->completion);
            }
        }
        for (auto& [id, member] : hub_.members)
            member->peer_died(id_);
        // These transfers waited for this member to fetch them: only this member refers to them.
        std::erase_if(hub_.open_transfers, [&](Transfer* transfer) {
            if (transfer->receiver != id_) return false;
            hub_.transfers.give_back(transfer);
            return true;
        });
        for (Event* event : inbox_) {
            if (event->kind == Event::Kind::completion) canceled.push_back(event->completion);
            hub_.events.give_back(event);
        }
    }
    for (Completion* completion : canceled)
        (*completion)(Status::canceled);
    ::close(event_fd_);
}

std::vector<std::byte> Member::address() const {
    Address address;
    address.hub = hub_.id;
    address.member = id_;
    std::vector<std::byte> bytes(sizeof address);
    std::memcpy(bytes.data(), &address, sizeof address);
    return bytes;
}

Status Member::connect(std::span<const std::byte> bytes, Endpoint** endpoint) {
    Address address;
    if (bytes.size() != sizeof address ||
        std::memcmp(bytes.data(), address.magic, sizeof address.magic) != 0) {
        log::error(Code::no_way, "cannot connect: {} bytes that are no loopback address", bytes.size());
        return Status::protocol;
    }
    std::memcpy(&address, bytes.data(), sizeof address);
    Lock lock(hub_.mutex);
    if (address.version != 1 || address.hub != hub_.id || !hub_.members.contains(address.member)) {
        log::error(Code::no_way, "cannot connect: member {} of loopback hub {} is not there", address.member,
                   address.hub);
        return Status::unavailable;
    }
    endpoints_.push_back(std::make_unique<LoopbackEndpoint>());
    endpoints_.back()->peer = address.member;
    *endpoint = endpoints_.back().get();
    return Status::ok;
}

void Member::wait_for_copies(Lock& lock) {
    hub_.copied.wait(lock, [&] {
        return std::ranges::none_of(hub_.open_transfers, [&](const Transfer* transfer) {
            return transfer->sender == id_ && transfer->copying;
        });
    });
}

void Member::disconnect(Endpoint* endpoint) {
    Lock lock(hub_.mutex);
    wait_for_copies(lock);
    for (Transfer* transfer : hub_.open_transfers) {
        if (transfer->endpoint == endpoint && !transfer->dead) {
            transfer->dead = true;
            push_completion(transfer->completion, Status::peer_lost);
        }
    }
    std::erase_if(inbox_, [&](Event* event) {
        if (event->kind != Event::Kind::lost || event->endpoint != endpoint) return false;
        hub_.events.give_back(event);
        return true;
    });
    std::erase_if(endpoints_, [&](const auto& each) { return each.get() == endpoint; });
}

Member* Member::peer_of(Endpoint& endpoint) {
    auto& to = static_cast<LoopbackEndpoint&>(endpoint);
    if (to.lost) return nullptr;
    const auto found = hub_.members.find(to.peer);
    return found == hub_.members.end() ? nullptr : found->second;
}

void Member::push(Event* event) {
    inbox_.push_back(event);
    waiting_.store(inbox_.size(), std::memory_order_release);
    if (!armed_) return;
    armed_ = false;
    const std::uint64_t one = 1;
    (void)!::write(event_fd_, &one, sizeof one);
}

void Member::push_message(Member& to, std::span<const std::byte> header, const void* payload,
                          std::size_t bytes, Transfer* transfer) {
    Event* event = hub_.events.take();
    event->kind = Event::Kind::message;
    event->header_bytes = header.size();
    event->payload_bytes = bytes;
    event->transfer = transfer;
    event->bytes.assign(header.begin(), header.end());
    if (!transfer && bytes > 0) {
        const auto* from = static_cast<const std::byte*>(payload);
        event->bytes.insert(event->bytes.end(), from, from + bytes);
    }
    to.push(event);
}

void Member::push_completion(Completion* completion, Status status) {
    Event* event = hub_.events.take();
    event->kind = Event::Kind::completion;
    event->completion = completion;
    event->status = status;
    push(event);
}

void Member::peer_died(MemberId peer) {
    for (Transfer* transfer : hub_.open_transfers) {
        if (transfer->sender == id_ && transfer->receiver == peer && !transfer->dead) {
            transfer->dead = true;
            push_completion(transfer->completion, Status::peer_lost);
        }
    }
    for (auto& endpoint : endpoints_) {
        if (endpoint->peer != peer || endpoint->lost) continue;
        endpoint->lost = true;
        Event* event = hub_.events.take();
        event->kind = Event::Kind::lost;
        event->endpoint = endpoint.get();
        push(event);
    }
}

Status Member::post(Endpoint& endpoint, std::span<const std::byte> header,
                    std::span<const std::byte> payload) {
    if (header.size() > max_wire_header || payload.size() > max_post) return Status::invalid;
    Lock lock(hub_.mutex);
    Member* peer = peer_of(endpoint);
    if (!peer) return Status::peer_lost;
    push_message(*peer, header, payload.data(), payload.size(), nullptr);
    return Status::ok;
}

Status Member::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                    std::size_t bytes, Completion* completion) {
    if (header.size() > max_wire_header) return Status::invalid;
    Lock lock(hub_.mutex);
    Member* peer = peer_of(endpoint);
    if (!peer) return Status::peer_lost;
    if (bytes <= hub_.config.eager_bytes) {
        push_message(*peer, header, payload, bytes, nullptr);
        return Status::ok;
    }
    Transfer* transfer = hub_.transfers.take();
    *transfer = {id_, peer->id_, &endpoint, payload, bytes, completion, false, false};
    hub_.open_transfers.push_back(transfer);
    push_message(*peer, header, nullptr, bytes, transfer);
    return Status::in_progress;
}

void Member::finish_transfer(Transfer* transfer) {
    const auto sender = hub_.members.find(transfer->sender);
    if (!transfer->dead && sender != hub_.members.end())
        sender->second->push_completion(transfer->completion, Status::ok);
    std::erase(hub_.open_transfers, transfer);
    hub_.transfers.give_back(transfer);
}

Status Member::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    auto* transfer = static_cast<Transfer*>(rendezvous);
    Lock lock(hub_.mutex);
    if (bytes != transfer->bytes) return Status::invalid;
    const Status status = transfer->dead ? Status::peer_lost : Status::ok;
    if (status == Status::ok) {
        transfer->copying = true;
        lock.unlock();
        std::memcpy(destination, transfer->payload, bytes);
        lock.lock();
        transfer->copying = false;
        hub_.copied.notify_all();
    }
    finish_transfer(transfer);
    if (hub_.config.order == LoopbackConfig::Order::fifo || hub_.random() % 2 == 0) return status;
    push_completion(completion, status);
    return Status::in_progress;
}

void Member::discard(void* rendezvous) {
    Lock lock(hub_.mutex);
    finish_transfer(static_cast<Transfer*>(rendezvous));
}

Event* Member::pop() {
    if (inbox_.empty()) {
        waiting_.store(0, std::memory_order_relaxed);
        return nullptr;
    }
    if (hub_.config.order == LoopbackConfig::Order::shuffled)
        std::swap(inbox_.front(), inbox_[hub_.random() % inbox_.size()]);
    Event* event = inbox_.front();
    inbox_.pop_front();
    waiting_.store(inbox_.size(), std::memory_order_relaxed);
    return event;
}

void Member::dispatch(const Event& event) {
    switch (event.kind) {
        case Event::Kind::completion:
            (*event.completion)(event.status);
            return;
        case Event::Kind::lost:
            if (handler_) handler_->on_endpoint_lost(*event.endpoint);
            return;
        case Event::Kind::message:
            break;
    }
    if (!handler_) {
        if (event.transfer) discard(event.transfer);
        return;
    }
    static constexpr std::byte nothing{};
    Incoming message;
    message.header = {event.bytes.data(), event.header_bytes};
    message.bytes = event.payload_bytes;
    message.rendezvous = event.transfer;
    if (!event.transfer)
        message.data = event.payload_bytes > 0 ? event.bytes.data() + event.header_bytes : &nothing;
    handler_->on_message(message);
}

unsigned Member::progress() {
    if (in_progress_ || waiting_.load(std::memory_order_acquire) == 0) return 0;
    in_progress_ = true;
    unsigned events = 0;
    while (events < hub_.config.events_per_progress) {
        Event* event = nullptr;
        {
            Lock lock(hub_.mutex);
            event = pop();
        }
        if (!event) break;
        dispatch(*event);
        ++events;
        Lock lock(hub_.mutex);
        hub_.events.give_back(event);
    }
    in_progress_ = false;
    return events;
}

Status Member::arm() {
    std::uint64_t stale = 0;
    (void)!::read(event_fd_, &stale, sizeof stale);
    Lock lock(hub_.mutex);
    if (!inbox_.empty()) return Status::retry;
    armed_ = true;
    return Status::ok;
}

}  // namespace

LoopbackHub::LoopbackHub(const LoopbackConfig& config) : impl_(std::make_unique<Impl>(config)) {}
LoopbackHub::~LoopbackHub() = default;

std::unique_ptr<Transport> LoopbackHub::join() {
    std::lock_guard lock(impl_->mutex);
    const MemberId id = ++impl_->last_member;
    auto member = std::make_unique<Member>(*impl_, id);
    impl_->members.emplace(id, member.get());
    return member;
}

}  // namespace offpath::transport
