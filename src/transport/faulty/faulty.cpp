#include "transport/faulty/faulty.h"

#include "transport/free_list.h"

#include <algorithm>
#include <random>
#include <utility>

namespace offpath::transport {
namespace {

struct FaultyEndpoint final : Endpoint {
    Endpoint* inner = nullptr;  // null: injection has made it lost
    bool lost = false;
};

class Faulty final : public FaultyTransport, Handler {
  public:
    Faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan)
        : inner_(std::move(inner)), plan_(plan), random_(plan.seed) {
        inner_->set_handler(this);
    }
    ~Faulty() override;

    void set_handler(Handler* handler) override { handler_ = handler; }
    std::vector<std::byte> address() const override { return inner_->address(); }
    Status connect(std::span<const std::byte> address, Endpoint** endpoint) override;
    void disconnect(Endpoint* endpoint) override;
    Status post(Endpoint& endpoint, std::span<const std::byte> header,
                std::span<const std::byte> payload) override;
    Status send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload, std::size_t bytes,
                Completion* completion) override;
    Status fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) override;
    bool checks_memory() const override { return inner_->checks_memory(); }
    std::size_t push_bytes(Endpoint& endpoint) override {
        auto& ours = static_cast<FaultyEndpoint&>(endpoint);
        return ours.inner ? inner_->push_bytes(*ours.inner) : 0;
    }
    void discard(void* rendezvous) override { inner_->discard(rendezvous); }
    unsigned progress() override;
    int event_fd() const override { return inner_->event_fd(); }
    Status arm() override { return held_.empty() ? inner_->arm() : Status::retry; }
    std::string describe() const override { return "faulty " + inner_->describe(); }

    void lose(Endpoint& endpoint) override;
    const FaultCounters& counters() const override { return counters_; }

  private:
    // Receives the inner transport's completion before the user's is called.
    struct Watched : Completion {
        Faulty* owner = nullptr;
        Completion* user = nullptr;
    };
    struct Held {
        std::uint64_t due = 0;  // in calls of progress()
        enum class Kind { message, completion, lost } kind = Kind::message;
        std::vector<std::byte> header, data;
        std::size_t bytes = 0;
        void* rendezvous = nullptr;
        Completion* completion = nullptr;
        Status status = Status::ok;
        FaultyEndpoint* endpoint = nullptr;
    };

    void on_message(const Incoming& message) override;
    void on_endpoint_lost(Endpoint& inner) override;
    static void on_done(Completion* watched, Status status);

    bool draw(double probability) {
        return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
    }
    std::uint64_t due() { return now_ + 1 + random_() % std::max(1u, plan_.max_delay); }
    bool loses_here();
    void hold_completion(Completion* completion, Status status);
    Status settle(Watched* watched, Status status);
    void deliver(Held& held);

    std::unique_ptr<Transport> inner_;
    const FaultPlan plan_;
    std::mt19937_64 random_;
    FaultCounters counters_;
    Handler* handler_ = nullptr;
    std::vector<std::unique_ptr<FaultyEndpoint>> endpoints_;
    std::vector<Held> held_;
    FreeList<Watched> watched_;
    std::uint64_t now_ = 0, sends_ = 0;
    bool in_progress_ = false, closing_ = false;
};

Faulty::~Faulty() {
    closing_ = true;
    for (Held& held : std::exchange(held_, {})) {
        if (held.rendezvous) inner_->discard(held.rendezvous);
        if (held.completion) (*held.completion)(held.status);
    }
    inner_.reset();
}

Status Faulty::connect(std::span<const std::byte> address, Endpoint** endpoint) {
    auto made = std::make_unique<FaultyEndpoint>();
    if (Status status = inner_->connect(address, &made->inner); status != Status::ok) return status;
    *endpoint = made.get();
    endpoints_.push_back(std::move(made));
    return Status::ok;
}

void Faulty::disconnect(Endpoint* endpoint) {
    auto& ours = static_cast<FaultyEndpoint&>(*endpoint);
    if (ours.inner) inner_->disconnect(ours.inner);
    std::erase_if(held_, [&](const Held& held) { return held.endpoint == &ours; });
    std::erase_if(endpoints_, [&](const auto& each) { return each.get() == &ours; });
}

void Faulty::lose(Endpoint& endpoint) {
    auto& ours = static_cast<FaultyEndpoint&>(endpoint);
    if (ours.lost) return;
    ours.lost = true;
    ++counters_.lost_endpoints;
    inner_->disconnect(std::exchange(ours.inner, nullptr));
    Held held;
    held.due = due();
    held.kind = Held::Kind::lost;
    held.endpoint = &ours;
    held_.push_back(std::move(held));
}

bool Faulty::loses_here() {
    ++sends_;
    return sends_ == plan_.lose_after || draw(plan_.lose_endpoint);
}

// A lost endpoint silently drops what was posted last, as a network does.
Status Faulty::post(Endpoint& endpoint, std::span<const std::byte> header,
                    std::span<const std::byte> payload) {
    auto& to = static_cast<FaultyEndpoint&>(endpoint);
    if (to.lost) return Status::peer_lost;
    if (loses_here()) {
        lose(endpoint);
        return Status::ok;
    }
    if (draw(plan_.fail_send)) {
        ++counters_.failed_sends;
        return Status::memory;
    }
    return inner_->post(*to.inner, header, payload);
}

Status Faulty::send(Endpoint& endpoint, std::span<const std::byte> header, const void* payload,
                    std::size_t bytes, Completion* completion) {
    auto& to = static_cast<FaultyEndpoint&>(endpoint);
    if (to.lost) return Status::peer_lost;
    if (loses_here()) {
        lose(endpoint);
        hold_completion(completion, Status::peer_lost);
        return Status::in_progress;
    }
    if (draw(plan_.fail_send)) {
        ++counters_.failed_sends;
        return Status::memory;
    }
    Watched* watched = watched_.take();
    watched->function = &Faulty::on_done;
    watched->owner = this;
    watched->user = completion;
    return settle(watched, inner_->send(*to.inner, header, payload, bytes, watched));
}

Status Faulty::fetch(void* rendezvous, void* destination, std::size_t bytes, Completion* completion) {
    Watched* watched = watched_.take();
    watched->function = &Faulty::on_done;
    watched->owner = this;
    watched->user = completion;
    return settle(watched, inner_->fetch(rendezvous, destination, bytes, watched));
}

// Returns the status for the user's call.
Status Faulty::settle(Watched* watched, Status status) {
    if (status == Status::in_progress) return status;
    Completion* user = watched->user;
    watched_.give_back(watched);
    if (status != Status::ok || !draw(plan_.delay_completion)) return status;
    ++counters_.delayed_completions;
    hold_completion(user, status);
    return Status::in_progress;
}

void Faulty::on_done(Completion* completion, Status status) {
    auto* watched = static_cast<Watched*>(completion);
    Faulty& owner = *watched->owner;
    Completion* user = watched->user;
    owner.watched_.give_back(watched);
    if (!owner.closing_ && owner.draw(owner.plan_.delay_completion)) {
        ++owner.counters_.delayed_completions;
        owner.hold_completion(user, status);
        return;
    }
    (*user)(status);
}

void Faulty::hold_completion(Completion* completion, Status status) {
    Held held;
    held.due = due();
    held.kind = Held::Kind::completion;
    held.completion = completion;
    held.status = status;
    held_.push_back(std::move(held));
}

void Faulty::on_message(const Incoming& message) {
    if (!draw(plan_.delay_message)) {
        if (handler_)
            handler_->on_message(message);
        else if (message.rendezvous)
            inner_->discard(message.rendezvous);
        return;
    }
    ++counters_.delayed_messages;
    Held held;
    held.due = due();
    held.header.assign(message.header.begin(), message.header.end());
    if (message.data) held.data.assign(message.data, message.data + message.bytes);
    held.bytes = message.bytes;
    held.rendezvous = message.rendezvous;
    held_.push_back(std::move(held));
}

void Faulty::on_endpoint_lost(Endpoint& inner) {
    for (auto& endpoint : endpoints_) {
        if (endpoint->inner != &inner || endpoint->lost) continue;
        endpoint->lost = true;
        if (handler_) handler_->on_endpoint_lost(*endpoint);
        return;
    }
}

void Faulty::deliver(Held& held) {
    switch (held.kind) {
        case Held::Kind::completion:
            (*held.completion)(held.status);
            return;
        case Held::Kind::lost:
            if (handler_) handler_->on_endpoint_lost(*held.endpoint);
            return;
        case Held::Kind::message:
            break;
    }
    if (!handler_) {
        if (held.rendezvous) inner_->discard(held.rendezvous);
        return;
    }
    static constexpr std::byte nothing{};
    Incoming message;
    message.header = held.header;
    message.bytes = held.bytes;
    message.rendezvous = held.rendezvous;
    if (!held.rendezvous) message.data = held.data.empty() ? &nothing : held.data.data();
    handler_->on_message(message);
}

unsigned Faulty::progress() {
    if (in_progress_) return 0;
    in_progress_ = true;
    unsigned events = inner_->progress();
    ++now_;
    // Deliver one at a time, because the called code may disconnect or send and so change the list.
    for (;;) {
        const auto found = std::ranges::find_if(held_, [&](const Held& held) { return held.due <= now_; });
        if (found == held_.end()) break;
        Held held = std::move(*found);
        held_.erase(found);
        deliver(held);
        ++events;
    }
    in_progress_ = false;
    // While something is held, the caller should call again.
    return events + (held_.empty() ? 0 : 1);
}

}  // namespace

std::unique_ptr<FaultyTransport> make_faulty(std::unique_ptr<Transport> inner, const FaultPlan& plan) {
    return std::make_unique<Faulty>(std::move(inner), plan);
}

}  // namespace offpath::transport
