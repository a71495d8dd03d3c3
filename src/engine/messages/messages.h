// Messages: the tenant for messages between two ranks of a team. Basic messages are matched by source and tag
// at the receiver's engine, by MPI's rules. Keyed messages meet their receive by a key that both ranks chose,
// in whatever order they come. Both kinds move while their hosts compute.
//
// Ownership: the slab owns operations; a team keeps waiting messages and receives. Threads: the engine's.
#pragma once

#include "engine/messages/headers.h"
#include "engine/messages/message_op.h"
#include "engine/teams/tenant.h"

#include <memory>
#include <span>
#include <vector>

namespace offpath::engine {

class Messages final : public Tenant {
  public:
    explicit Messages(Core& core) : Tenant(core), ops_(core.random) {}

    // These behave as the Engine calls of the same names.
    Status send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                Completion* done);
    Status recv(Team& team, const memory::HostRange& buffer, matching::Envelope wanted, MessageInfo* info,
                Completion* done);
    Status probe(Team& team, matching::Envelope wanted, bool waits, MessageInfo* info, Completion* done);
    Status keyed_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MessageKey& key,
                      Completion* done);
    Status keyed_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                      const MessageKey& key, MessageInfo* info, Completion* done);
    void keyed_cancel(Team& team, std::uint32_t source, const MessageKey& key);
    void keyed_store(Team& team, std::uint32_t dest, const MessageKey& key);

    // Tenant
    std::unique_ptr<TeamPart> join(Team& team) override;
    bool on_message(Team& team, std::span<const std::byte> header, std::span<const std::byte> payload,
                    Peer& from) override;
    void cancel(Session& session, Status reason) override;
    void ranks_gone(Team& team, const RanksGone& gone) override;
    std::size_t outstanding(const Session& session) const override;
    void mark_awaited(const Session& session) const override;
    bool advance() override { return false; }
    bool finish() override;
    bool has_work() const override { return !finished_.empty(); }
    void trim() override { ops_.release_if_unused(); }

    // Called by operations and stored messages.
    void op_over(MessageOp& op, Status status);
    void is_stored(StoredMessage& stored, Status status);
    std::uint64_t stored_bytes = 0;

  private:
    MessageOp& new_op(Team& team, const memory::HostRange& buffer, std::uint32_t peer, bool receives,
                      Completion* done);
    SendTransfer* new_send(MessageOp& op, const Location& place, std::uint64_t bytes);
    RecvTransfer* new_recv(MessageOp& op, const Location& place, std::uint64_t bytes, Peer& from);
    void take_message(MessageOp& receive, const Announced& message);
    // basic.cpp
    void on_request(Team& team, const BasicRequest& request, std::span<const std::byte> payload);
    void tell_probes(MessagesOfTeam& of_team, const Announced& message);
    // keyed.cpp
    void on_keyed(Team& team, const Keyed& message);
    void on_keyed_store(Team& team, const KeyedStoreRequest& request);
    void receive_stored(MessageOp& receive, const std::shared_ptr<StoredMessage>& stored);

    Slab<MessageOp> ops_;
    std::vector<MessageOp*> finished_;
};

}  // namespace offpath::engine
