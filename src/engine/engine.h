// Engine: executes schedules, messages and operations on windows for the host ranks of one proxy, over a
// Transport and their HostMemory. It knows nothing of sockets, rings or processes: the proxy feeds it, tests
// feed it, and the host fallback feeds it.
//
// It has a core and three tenants. The core keeps sessions and teams, sorts messages by their kind, and
// orders the work of a round. Tenants do the work: schedules/, messages/, onesided/. They move bytes by
// mover/.
//
// Ownership: it borrows transport and sessions' memory; teams and running instances are its own. Threads:
// one. Fast path: start() and advance() do not allocate once a schedule has been run before with the same
// number of instances in flight. Time and random numbers come from outside (Surroundings), so a run can
// repeat exactly.
#pragma once

#include "base/completion.h"
#include "engine/messages/operation.h"
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

class Session;  // a host rank, as the engine sees it
class Team;     // a team, seen from one session's rank
class Window;   // memory of one session's rank that the ranks of its team reach, seen from that rank

class Engine final : public transport::Handler {
  public:
    Engine(transport::Transport& transport, ProxyId self, const Config& config = {},
           const Surroundings& surroundings = {});
    // A transport completes or drops what is in flight when it is destroyed, and may still read bounce
    // buffers until then. So the order at the end is: close(), destroy the transport, destroy the engine.
    ~Engine() override;
    // Ends all work: from here on the engine starts nothing, and completions and messages that still come are
    // ignored.
    void close();

    // A host rank attaches. `memory` must outlive the session. access: the job is here, with another secret.
    Status open_session(const JobId& job, const JobSecret& secret, std::uint32_t job_rank,
                        memory::HostMemory& memory, Session** session);
    // Makes a proxy of the session's job known. Known twice with the same address is fine; with another one
    // it is Status::invalid. What one job says holds for that job only. Connects at first use, or by greet().
    Status add_proxy(Session& session, ProxyId proxy, std::span<const std::byte> address);
    // Begins to connect to all proxies that the session knows, unless they are many: a connection takes
    // milliseconds, which the first message of each pair would wait for.
    void greet(const Session& session);
    // Cuts a session off: what runs for it ends at once with `reason`, its peers are told, and its memory is
    // not touched any more once this returns true; false: transfers are still being drained, call again after
    // progress().
    bool close_session(Session* session, Status reason);
    // Number of instances and messages of the session that are not done, of its calls on
    // windows, and of what is being done to its windows.
    std::size_t outstanding(const Session& session) const;

    // `members`: by team rank. Proxies must have been added.
    Status create_team(Session& session, std::uint64_t team_id, std::uint32_t rank,
                       std::span<const Member> members, Team** team);
    // Ends the team when nothing runs on it any more; returns at once.
    void destroy_team(Team* team);

    // Starts an instance of a plan. `sequence` numbers the starts of the team, the same on all ranks, in
    // order. `buffers`: one range per user slot, in slot order, each at least as long as the slot. `done` is
    // called when it is over. Errors are returned at once (nothing started) or through `done`.
    Status start(Team& team, const Plan& plan, std::uint32_t sequence,
                 std::span<const memory::HostRange> buffers, Completion* done);

    // Basic primitives: `order` numbers this rank's sends to `dest` on this team.
    Status send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, std::uint32_t tag,
                Completion* done);
    // `info` is filled before `done` is called. source and tag may be matching::any.
    Status recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, std::uint32_t tag,
                MessageInfo* info, Completion* done);

    // Keyed messages: one meets the receive with its source and key, in whatever order they come. The send is
    // done when its receive, or by keyed_store() the engine there, has taken it; a second one with the key of
    // one that waits is Status::invalid.
    Status keyed_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MessageKey& key,
                      Completion* done);
    Status keyed_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source,
                      const MessageKey& key, MessageInfo* info, Completion* done);
    // The receive ends with Status::canceled if no message has met it; else nothing happens.
    void keyed_cancel(Team& team, std::uint32_t source, const MessageKey& key);
    // Asks the engine that serves `dest` to take the message of this key in, up to Config::stored_bytes for
    // all, if no receive has met it. Then the send is done.
    void keyed_store(Team& team, std::uint32_t dest, const MessageKey& key);

    // Windows (onesided/onesided.h). Every rank of the team makes its own under the same id, before any rank
    // uses it. `memory` is what it exposes at offset 0, nothing if it has no bytes; a dynamic one exposes
    // what is attached, each range at `begin`.
    Status create_window(Team& team, std::uint64_t id, const memory::HostRange& memory, bool dynamic,
                         Window** window);
    Status attach_window(Window& window, const memory::HostRange& memory, std::uint64_t begin);
    // `done` when nothing touches the range any more.
    Status detach_window(Window& window, std::uint64_t begin, Completion* done);
    // `done` when nothing touches the window's memory any more; the window is gone then.
    Status destroy_window(Window& window, Completion* done);
    // `done` (may be null) when it is done at the target, and here. Operations start in order for each
    // target; updates are applied in order too.
    Status one_sided(Window& window, OneSidedCall call, Completion* done);
    // Does it now. `result` is what it brings, valid until the next call of the engine. unsupported: not at
    // once; access: it leaves the window, or there is none; protocol: it contradicts itself. Then nothing has
    // happened.
    Status one_sided_at_once(const DirectOperation& call, std::span<const std::byte>& result);
    // For the next flush: an operation could not even be started.
    void one_sided_failed(Window& window, std::uint32_t target, Status status);
    // `done` when all that was started before, to that target or to every_target, is done; with the first
    // error among what is not watched and no flush has reported.
    Status flush_window(Window& window, std::uint32_t target, Completion* done);

    // One bounded round of work: advances transfers and ready ops. Returns whether anything moved. Does not
    // progress the transport.
    bool advance();
    // Whether advance() would find something to do right now: calls made since the last round may have left
    // it work. Ask before sleeping.
    bool has_work() const;

    // Whether an operation here may depend on other proxies, so that their silence matters. Ask before
    // sleeping.
    bool awaits_others() const;
    // Asks the proxies that operations here depend on whether they still go round, and gives up those that
    // have owed an answer for `limit_ns`; their operations end with peer_lost. To be called several times in
    // that time; time in which it is not called does not count. Each job gives up for itself; a connection
    // that brings no answer in any job is closed.
    void beat(std::uint64_t now_ns, std::uint64_t limit_ns);

    // Gives back the memory that is kept for the next operations. Does nothing while there are sessions.
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
