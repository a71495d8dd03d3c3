// One send or receive, and the state that a team keeps for its messages.
#pragma once

#include "base/linked_list.h"
#include "engine/mover/transfer.h"
#include "engine/shared/identifiers.h"
#include "engine/teams/team.h"
#include "matching/matcher.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

// What a finished receive learned. It is valid, with `status`, when the completion is called.
struct MessageInfo {
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    std::uint64_t bytes = 0;
};

class Messages;
struct MessageOp;

// A message that its sender has announced.
struct Announced {
    std::uint32_t source = 0;
    std::uint32_t tag = 0;    // not used by keyed messages
    std::uint64_t bytes = 0;  // of the whole payload
    std::uint64_t token = 0;  // of the sending transfer; 0: the payload is here
    std::vector<std::byte> payload;
};

// A sender and the key that it chose.
struct KeyedAddress {
    std::uint32_t source = 0;
    MessageKey key;
    friend bool operator==(const KeyedAddress&, const KeyedAddress&) = default;
};
struct KeyedAddressHash {
    std::size_t operator()(const KeyedAddress& at) const {
        std::uint64_t hash = (at.key.low + 0x9E3779B97F4A7C15ull * (at.source + 1)) ^ (at.key.high << 17);
        hash *= 0xBF58476D1CE4E5B9ull;
        return hash ^ (hash >> 31);
    }
};

// A keyed message that was stored before its receive came; it is still arriving, or complete. The team keeps
// it, and then the receive that takes it.
struct StoredMessage : Completion {
    StoredMessage(Messages& home, Team& team, const KeyedAddress& address, std::uint64_t bytes,
                  std::unique_ptr<std::byte[]> room);
    ~StoredMessage();
    StoredMessage(const StoredMessage&) = delete;
    StoredMessage& operator=(const StoredMessage&) = delete;

    Messages& home;
    Team& team;
    const KeyedAddress address;
    const std::uint64_t size;
    std::unique_ptr<std::byte[]> bytes;
    bool here = false;
    MessageOp* receive = nullptr;  // the receive that waits until it is complete
};

struct MessageOp final : TransferPair, Linked<MessageOp> {
    std::uint64_t token = 0;
    Messages* home = nullptr;
    Team* team = nullptr;
    bool receives = false;
    bool probes = false;  // a receive that takes nothing
    bool wanted = false;  // keyed: a receive that no message has met
    bool keyed = false;   // a receive by key
    // Of the sending transfer of a keyed message that was granted to this receive. It is over when it hears
    // that this receive is.
    std::uint64_t sender = 0;
    MessageKey key;
    std::shared_ptr<StoredMessage> kept;  // stored message that it reads from or writes to
    Completion* done = nullptr;
    MessageInfo* info = nullptr;
    memory::HostRange buffer;
    std::uint32_t peer = 0, tag = 0;
    std::uint32_t mask = UINT32_MAX;  // of a receive (matching::Envelope)
    Status status = Status::ok;
    bool over = false;

    matching::Envelope envelope() const { return {peer, tag, mask}; }
    // Whether it waits for that rank of the team, perhaps among others.
    bool waits_for(std::uint32_t rank) const { return peer == matching::any || ((peer ^ rank) & mask) == 0; }
    void moved(Status moved_with) override;
    void reset() { *this = MessageOp{}; }
};

struct MessagesOfTeam final : TeamPart {
    LinkedList<MessageOp> ops;
    matching::Matcher matcher;
    // Of ranks that have exchanged messages: the next number, by destination, and what came, by source.
    std::unordered_map<std::uint32_t, std::uint32_t> send_order;
    std::unordered_map<std::uint32_t, matching::OrderGate<Announced>> receive_order;
    std::unordered_map<std::uint64_t, Announced> arrived;  // messages waiting in the matcher, by cookie
    std::uint64_t next_cookie = 1;
    std::vector<MessageOp*> probes;  // those that wait
    std::unordered_map<KeyedAddress, MessageOp*, KeyedAddressHash> keyed_wanted;
    std::unordered_map<KeyedAddress, Announced, KeyedAddressHash> keyed_arrived;
    std::unordered_map<KeyedAddress, std::shared_ptr<StoredMessage>, KeyedAddressHash> keyed_stored;

    bool idle() const override { return ops.empty(); }
    static MessagesOfTeam& of(const Team& team) {
        return static_cast<MessagesOfTeam&>(*team.parts[static_cast<std::size_t>(TenantId::messages)]);
    }
};

}  // namespace offpath::engine
