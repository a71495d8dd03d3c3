// Matcher: matches messages with receives, as a pure data structure: no memory but its own, no I/O, no time.
// The rules are those of MPI 3.1, section 3.5. Among the receives that match a message, the one posted first
// takes it. Among the messages that match a receive, those of one source are taken in the order in which they
// were sent.
//
// The caller must feed the arrivals of one source in that order; OrderGate restores it. Exact pairs meet in a
// hash table; wildcards cost a walk over the waiting entries. Ownership: each entry carries an opaque
// `cookie` of the caller. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace offpath::matching {

constexpr std::uint32_t any = UINT32_MAX;

struct Envelope {
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    // Used in a receive: the bits of `source` in which a message's source must agree with it.
    std::uint32_t mask = UINT32_MAX;
};

class Matcher {
  public:
    using Cookie = std::uint64_t;

    // Posts a receive for source (or any) and tag (or any). Returns the waiting message that it takes, if
    // there is one. Otherwise the receive is kept.
    std::optional<Cookie> post(Envelope wanted, Cookie receive);
    // The waiting message that post() would take.
    std::optional<Cookie> peek(Envelope wanted) const;
    // A message arrives. Returns the receive that takes it, if there is one. Otherwise the message is kept.
    std::optional<Cookie> arrive(Envelope message, Cookie cookie);

    static bool matches(Envelope wanted, Envelope message) {
        return (wanted.source == any || ((wanted.source ^ message.source) & wanted.mask) == 0) &&
               (wanted.tag == any || wanted.tag == message.tag);
    }

    // Withdraws a kept receive. False: it is not kept (any more).
    bool cancel_receive(Cookie receive);
    // Passes everything that is kept to the callbacks, and is empty afterwards.
    void clear(const std::function<void(Cookie)>& receive, const std::function<void(Cookie)>& message);

    std::size_t receives() const { return receive_count_; }
    std::size_t messages() const { return arrivals_.size(); }

  private:
    struct Waiting {
        Envelope envelope;
        Cookie cookie;
        std::uint64_t number;  // order of posting or arrival
    };
    using Queue = std::list<Waiting>;
    static bool is_wild(Envelope wanted) {
        return wanted.source == any || wanted.tag == any || wanted.mask != UINT32_MAX;
    }
    static std::uint64_t key(Envelope envelope) {
        return std::uint64_t{envelope.source} << 32 | envelope.tag;
    }

    std::unordered_map<std::uint64_t, Queue> exact_;  // receives without wildcards
    Queue wild_;                                      // receives with wildcards, oldest first
    Queue arrivals_;                                  // messages, oldest first
    std::unordered_map<std::uint64_t, std::list<Queue::iterator>> by_envelope_;
    std::uint64_t next_number_ = 0;
    std::size_t receive_count_ = 0;
};

// OrderGate: puts the numbered messages of one source back in order.
template <typename Message>
class OrderGate {
  public:
    // Calls `pass` for this message and then for those that waited for it, in order. A message that is early
    // is kept. False: a message with this number has come before.
    template <typename Pass>
    bool arrive(std::uint32_t number, Message message, Pass&& pass) {
        if (static_cast<std::int32_t>(number - next_) < 0 || early_.contains(number)) return false;
        if (number != next_) {
            early_.emplace(number, std::move(message));
            return true;
        }
        ++next_;
        pass(std::move(message));
        for (auto it = early_.find(next_); it != early_.end(); it = early_.find(next_)) {
            Message following = std::move(it->second);
            early_.erase(it);
            ++next_;
            pass(std::move(following));
        }
        return true;
    }
    bool is_next(std::uint32_t number) const { return number == next_; }
    std::size_t waiting() const { return early_.size(); }

  private:
    std::uint32_t next_ = 0;
    std::unordered_map<std::uint32_t, Message> early_;
};

}  // namespace offpath::matching
