// Steps: basic and keyed messages.
#include "play.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace offpath::campaign {
namespace {

// One message and its receive, as the receive must find it.
struct Expected {
    engine::MessageInfo info;
    std::span<const std::byte> sent;
    std::span<std::byte> received;
    std::uint32_t source = 0, tag = 0;
    Call *send = nullptr, *receive = nullptr;
    void join() const {
        if (send == nullptr || receive == nullptr) return;
        send->partners = {receive};
        receive->partners = {send};
    }
    std::string check() const {
        if (info.bytes != sent.size())
            return fmt::format("it says {} bytes, {} were sent", info.bytes, sent.size());
        if (info.source != source) return fmt::format("it says rank {}", info.source);
        return difference(received.first(sent.size()), sent);
    }
};

std::span<std::byte> filled(Play& play, std::size_t bytes) {
    const std::span<std::byte> made = play.buffer(bytes, {});
    fill(made, play.next_number());
    return made;
}

}  // namespace

// Some messages of one sender, one tag, in order; the receives are posted before, between or after.
void basic_messages(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t from = play.any_rank(), to = play.any_rank();
    // A message that cannot be read is never announced, and its receive would take the next one.
    const std::size_t count = play.has(Step::Kind::forbid) ? 1 : 1 + random() % 3;
    const auto tag = static_cast<std::uint32_t>(play.next_number());
    std::vector<std::shared_ptr<Expected>> messages;
    for (std::size_t i = 0; i < count; ++i) {
        auto made = std::make_shared<Expected>();
        made->sent = filled(play, play.any_size());
        made->source = from;
        made->tag = tag;
        messages.push_back(std::move(made));
    }
    std::size_t sent = 0, received = 0;
    while (sent < count || received < count) {
        if (received == count || (sent < count && random() % 2 == 0)) {
            const auto& message = messages[sent++];
            if (!stage.present(from)) continue;
            Call& call = play.call(
                from, only(to), fmt::format("sends {} B to rank {}, tag {}", message->sent.size(), to, tag));
            message->send = &call;
            message->join();
            play.began(call, stage.engine(from).send(stage.team(from), range(message->sent), to, tag, &call));
        } else {
            const auto& message = messages[received++];
            if (!stage.present(to)) continue;
            const bool too_small = !message->sent.empty() && random() % 16 == 0;
            const std::size_t room =
                too_small ? message->sent.size() - 1 : message->sent.size() + random() % 50;
            message->received = play.buffer(room, std::byte{0xEE});
            Call& call = play.call(to, only(from),
                                   fmt::format("receives up to {} B from rank {}, tag {}", room, from, tag));
            call.written = message->received;
            message->receive = &call;
            message->join();
            if (too_small) {
                call.expected = Status::truncated;
                call.check = [message] { return std::string(); };  // keeps what the engine writes to
            } else {
                call.check = [message] { return message->check(); };
            }
            play.began(call, stage.engine(to).recv(stage.team(to), range(message->received), from, tag,
                                                   &message->info, &call));
        }
        play.rounds(random() % 3);
    }
}

void messages_from_anybody(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t to = play.any_rank();
    const std::uint32_t senders[2] = {play.any_rank(), play.any_rank()};
    const auto tag = static_cast<std::uint32_t>(play.next_number());
    // What arrived must be one of the two, and not twice the same.
    struct Both {
        std::span<const std::byte> sent[2];
        std::uint32_t from[2] = {};
        bool taken[2] = {};
    };
    auto both = std::make_shared<Both>();
    std::vector<Call*> sends, receives;
    const auto join = [&] {
        for (Call* each : sends)
            each->partners.assign(receives.begin(), receives.end());
        for (Call* each : receives)
            each->partners.assign(sends.begin(), sends.end());
    };
    for (int i = 0; i < 2; ++i) {
        both->sent[i] = filled(play, play.any_size());
        both->from[i] = senders[i];
    }
    const auto receive = [&] {
        if (!stage.present(to)) return;
        auto message = std::make_shared<Expected>();
        message->received = play.buffer(60'100, std::byte{0xEE});
        Call& call = play.call(to, stage.everybody(), fmt::format("receives from anybody, tag {}", tag));
        call.written = message->received;
        call.check = [message, both]() -> std::string {
            for (int i = 0; i < 2; ++i) {
                if (both->taken[i] || message->info.source != both->from[i]) continue;
                message->sent = both->sent[i];
                message->source = both->from[i];
                if (!message->check().empty()) continue;
                both->taken[i] = true;
                return {};
            }
            return fmt::format("{} B from rank {} are none of the messages", message->info.bytes,
                               message->info.source);
        };
        call.from_anybody = true;
        receives.push_back(&call);
        join();
        play.began(call, stage.engine(to).recv(stage.team(to), range(message->received), matching::any, tag,
                                               &message->info, &call));
    };
    const auto send = [&](int i) {
        if (!stage.present(senders[i])) return;
        Call& call = play.call(senders[i], stage.everybody(),
                               fmt::format("sends {} B to rank {}, tag {}", both->sent[i].size(), to, tag));
        call.from_anybody = true;
        sends.push_back(&call);
        join();
        play.began(
            call,
            stage.engine(senders[i]).send(stage.team(senders[i]), range(both->sent[i]), to, tag, &call));
    };
    const bool first = random() % 2 == 0;
    if (first) receive();
    send(0);
    play.rounds(random() % 20);
    if (!first) receive();
    send(1);
    play.rounds(random() % 5);
    receive();
}

namespace {

// Receives a keyed message; its first receive may be canceled, and is then made again.
class KeyedReceive final : public Actor {
  public:
    KeyedReceive(Play& play, std::shared_ptr<Expected> message, std::uint32_t from, std::uint32_t to,
                 const MessageKey& key, std::uint64_t wait, std::uint64_t patience, bool cancels)
        : play_(play),
          message_(std::move(message)),
          from_(from),
          to_(to),
          key_(key),
          wait_(wait),
          patience_(patience),
          cancels_(cancels) {}
    bool act() override {
        if (!play_.stage().present(to_)) return true;
        if (call_ != nullptr && !call_->must_end()) return true;
        if (wait_ > 0) return --wait_, false;
        if (call_ == nullptr) {
            start();
            wait_ = cancels_ ? patience_ : 0;
            return false;
        }
        if (cancels_) {
            cancels_ = false;
            play_.stage().engine(to_).keyed_cancel(play_.stage().team(to_), from_, key_);
            return false;
        }
        if (!call_->status) return false;
        if (call_->status != Status::canceled || !call_->may_be_canceled) return true;
        start();
        call_->may_be_canceled = false;
        return false;
    }
    std::string text() const override {
        return fmt::format("the receive of rank {} with key {:x}", to_, key_.low);
    }

  private:
    void start() {
        Stage& stage = play_.stage();
        message_->received = play_.buffer(message_->sent.size(), std::byte{0xEE});
        call_ =
            &play_.call(to_, only(from_), fmt::format("receives from rank {}, key {:x}", from_, key_.low));
        call_->written = message_->received;
        call_->may_be_canceled = cancels_;
        call_->check = [message = message_] { return message->check(); };
        if (cancels_) {
            Call* call = call_;
            call_->check = [message = message_, call] {
                return call->well() ? message->check() : std::string();
            };
        }
        message_->receive = call_;
        message_->join();
        play_.began(*call_, stage.engine(to_).keyed_recv(stage.team(to_), range(message_->received), from_,
                                                         key_, &message_->info, call_));
    }
    Play& play_;
    std::shared_ptr<Expected> message_;
    const std::uint32_t from_, to_;
    const MessageKey key_;
    std::uint64_t wait_;
    const std::uint64_t patience_;  // before it cancels
    bool cancels_;
    Call* call_ = nullptr;
};

}  // namespace

void keyed_message(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t from = play.any_rank(), to = play.any_rank();
    const MessageKey key{from, play.next_number()};
    auto message = std::make_shared<Expected>();
    message->sent = filled(play, play.any_size());
    message->source = from;
    const bool cancels = random() % 4 == 0, stores = random() % 3 == 0, first = random() % 2 == 0;
    const std::uint64_t wait = random() % 40, patience = random() % 10;
    auto receive = std::make_unique<KeyedReceive>(play, message, from, to, key, wait, patience, cancels);
    if (first) {
        play.act(std::move(receive));
        play.rounds(random() % 30);
    }
    if (stage.present(from)) {
        Call& call =
            play.call(from, only(to),
                      fmt::format("sends {} B to rank {}, key {:x}", message->sent.size(), to, key.low));
        message->send = &call;
        message->join();
        play.began(call,
                   stage.engine(from).keyed_send(stage.team(from), range(message->sent), to, key, &call));
        play.rounds(random() % 5);
        if (stores && stage.present(from)) stage.engine(from).keyed_store(stage.team(from), to, key);
    }
    if (!first) play.act(std::move(receive));
}

}  // namespace offpath::campaign
