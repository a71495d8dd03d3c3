// Engine: executes schedules, messages and window operations for the host ranks of one proxy, over a
// Transport and the ranks' HostMemory. It knows nothing of sockets, rings or processes. The proxy, the tests
// and the host fallback all drive it through this interface.
//
// It has a core and three tenants. The core keeps sessions and teams, dispatches messages by kind, and orders
// the work of a round. The tenants do the work: schedules/, messages/, onesided/. They move bytes through
// mover/.
//
// Ownership: it borrows the transport and the sessions' memory; it owns teams and running instances. Threads:
// one. Fast path: start() and advance() do not allocate once a schedule has run with the same number of
// instances in flight. Time and random numbers come from outside (Surroundings), so a run can repeat exactly.
#pragma once

#include "base/completion.h"
#include "engine/messages/message_op.h"
#include "engine/onesided/calls.h"
#include "engine/schedules/plan.h"
#include "engine/shared/config.h"
#include "engine/shared/identifiers.h"
#include "memory/host_memory.h"
#include "transport/transport.h"

#include <cstdint>
#include <memory>
#include <span>

namespace offpath::engine {

class Kernels;  // what runs a session's kernels (teams/kernels.h)
class Session;  // a host rank, as the engine sees it
class Team;     // a team, seen from one session's rank
class Window;   // memory of one session's rank that the ranks of its team reach, seen from that rank

class Engine final : public transport::Handler {
  public:
    Engine(transport::Transport& transport, ProxyId self, const Config& config = {},
           const Surroundings& surroundings = {});
    // Before it is destroyed, a transport may still read bounce buffers; its destructor completes or drops
    // what is in flight. The order of shutdown is therefore: close(), destroy the transport, destroy the
    // engine.
    ~Engine() override;
    // Ends all work. From here on the engine starts nothing and ignores completions and messages that still
    // arrive.
    void close();

    // A host rank attaches. `memory` must outlive the session. access: the job is present with another
    // secret.
    Status open_session(const JobId& job, const JobSecret& secret, std::uint32_t job_rank,
                        memory::HostMemory& memory, Session** session);
    // From now on schedules of the session may have compute ops. `kernels` must outlive the session.
    void use_kernels(Session& session, Kernels& kernels);
    // Announces a proxy of the session's job. Repeating the same address is allowed; another address is
    // Status::invalid. What one job announces holds for that job only. The engine connects at first use, or
    // in greet().
    Status add_proxy(Session& session, ProxyId proxy, std::span<const std::byte> address);
    // Starts connecting to all proxies that the session knows, unless they are too many. A connection takes
    // milliseconds, and otherwise the first message of each pair would wait for it.
    void greet(const Session& session);
    // Ends a session. Its operations end at once with `reason`, and its peers are told. True: its memory is
    // not touched any more. False: transfers are still draining; call again after progress().
    bool close_session(Session* session, Status reason);
    // The number of the session's unfinished instances, messages and window calls, plus the operations of
    // others in progress on its windows.
    std::size_t outstanding(const Session& session) const;

    // `members` is indexed by team rank. All proxies in it must have been added.
    Status create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                       std::span<const Member> members, Team** team);
    // Returns at once; the team ends when nothing runs on it any more.
    void destroy_team(Team* team);

    // Starts an instance of a plan. `sequence` numbers the team's starts in order, alike on all ranks.
    // `buffers` has one range per user slot, in slot order, each at least as long as the slot. `done` is
    // called when the instance is over. Errors are returned at once (nothing was started) or passed to
    // `done`. `parts`: the rank helps with the plan's shared copy; valid until `done`.
    Status start(Team& team, const Plan& plan, std::uint32_t sequence,
                 std::span<const memory::HostRange> buffers, Completion* done,
                 shared_parts::Word* parts = nullptr);

    // Basic messages. Sends from this rank to one `dest` of the team stay in order.
    Status send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                Completion* done);
    // `info` is filled before `done` is called. source and tag may be matching::any. A message's source must
    // agree with `source` in the bits of `mask`.
    Status recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, std::uint32_t tag,
                MessageInfo* info, Completion* done, std::uint32_t mask = UINT32_MAX);
    // Finds the message that recv() would take, and leaves it. If there is none, it `waits` for one or ends
    // with Status::canceled.
    Status probe(Team& team, std::uint32_t source, std::uint32_t mask, std::uint32_t tag, bool waits,
                 MessageInfo* info, Completion* done);

    // Keyed messages: a send meets the receive with its source and key, whichever comes first. The send is
    // done when its receive has taken it, or the target's engine after keyed_store(). A second send or
    // receive with the key of a waiting one is Status::invalid.
    Status keyed_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MessageKey& key,
                      Completion* done);
    Status keyed_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                      const MessageKey& key, MessageInfo* info, Completion* done);
    // Ends the receive with Status::canceled if no message has met it; otherwise does nothing.
    void keyed_cancel(Team& team, std::uint32_t source, const MessageKey& key);
    // Asks the engine that serves `dest` to store the message with this key if no receive has met it. The
    // send is then done. The total stored is at most Config::stored_bytes.
    void keyed_store(Team& team, std::uint32_t dest, const MessageKey& key);

    // Windows (onesided/onesided.h). Every rank of the team makes its own under the same id, before any rank
    // uses it. `memory` is exposed at offset 0; a range of no bytes exposes nothing. A dynamic window exposes
    // what is attached, each range at its `begin`.
    Status create_window(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                         Window** window);
    Status attach_window(Window& window, const memory::HostRange& memory, std::uint64_t begin);
    // `done` is called when nothing touches the range any more.
    Status detach_window(Window& window, std::uint64_t begin, Completion* done);
    // The window keeps its ledger (rma/ledger.h) in `memory`. unsupported: this process has not mapped that.
    Status keep_ledger(Window& window, const memory::HostRange& memory);
    // `done` is called when nothing touches the window's memory any more; the window then no longer exists.
    Status destroy_window(Window& window, Completion* done);
    // `done` (may be null) is called when the operation is complete at the target and here. Operations to one
    // target start in order, and updates are applied in order.
    Status one_sided(Window& window, OneSidedCall call, Completion* done);
    // Executes the operation immediately. `result` is what it fetches, valid until the next call of the
    // engine. Errors, after which nothing has happened: unsupported (cannot be done immediately), access (out
    // of the window's bounds, or no such window), protocol (contradictory arguments).
    Status one_sided_at_once(const DirectAccess& call, std::span<const std::byte>& result);
    // Records, for the next flush, that an operation could not even be started.
    void one_sided_failed(Window& window, std::uint32_t target, Status status);
    // `done` is called when every earlier operation to `target`, or to every_target, is complete. It gets the
    // first error among operations that are not watched and that no flush has reported.
    Status flush_window(Window& window, std::uint32_t target, Completion* done);

    // One bounded round of work: advances transfers and ready ops. Returns whether anything moved. It does
    // not progress the transport.
    bool advance();
    // Whether advance() has work right now, for example from calls made since the last round. Check before
    // sleeping.
    bool has_work() const;

    // Whether an operation here may depend on other proxies, so that their silence matters. Check before
    // sleeping.
    bool awaits_others() const;
    // Asks the proxies that operations here depend on whether their loops still run. A proxy that has owed an
    // answer for `limit_ns` is given up; operations on it end with peer_lost. Call it several times within
    // that limit: time in which it is not called does not count. Each job gives up proxies for itself. A
    // connection that brings no answer in any job is closed.
    void beat(std::uint64_t now_ns, std::uint64_t limit_ns);

    // Frees memory that is kept for later operations. Does nothing while there are sessions.
    void trim();

    const Counters& counters() const;

    // transport::Handler
    void on_message(const transport::Incoming& message) override;
    void on_endpoint_lost(transport::Endpoint& endpoint) override;

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace offpath::engine
