// Engine: executes schedules and basic sends and receives for the host ranks of one proxy, over a Transport
// and their HostMemory. It knows nothing of sockets, rings or processes: the proxy feeds it, tests feed it,
// and the host fallback feeds it. Ownership: it borrows transport and sessions; teams and running instances
// are its own. Threads: one. Fast path: start() and progress() do not allocate once a schedule has been run
// before with the same number of instances in flight.
#pragma once

#include "base/completion.h"
#include "engine/plan.h"
#include "matching/matcher.h"
#include "memory/host_memory.h"
#include "rma/operation.h"
#include "transport/transport.h"

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace offpath::engine {

// Names a proxy in the whole job. 0 is none.
using ProxyId = std::uint64_t;
// Drawn at random by the job's first rank: it names the job.
struct JobId {
    std::uint64_t high = 0, low = 0;
    friend auto operator<=>(const JobId&, const JobId&) = default;
};
// What the ranks of a job tell their proxies, and nobody else: a proxy that knows it may speak to the job's
// sessions. It never crosses the network between proxies.
using JobSecret = std::array<std::byte, 32>;
// What proves, in a message from one proxy to another, that its sender knows the secret of the job: 64 bits
// of HMAC-SHA256 over the job and both numbers.
std::uint64_t pass_of(const JobSecret& secret, const JobId& job, ProxyId from, ProxyId to);

struct Config {
    std::size_t chunk_bytes = 512 << 10;  // of what goes through bounce buffers, and of rendezvous messages
    std::uint32_t send_bounces = 16, recv_bounces = 16;
    std::uint32_t chunks_in_flight = 4;  // per transfer
    std::uint32_t reduce_tiles = 16;     // for operands without a pointer; two at least
    std::uint64_t most_scratch_bytes = std::uint64_t{256} << 20;  // of one running schedule
    std::uint64_t scratch_kept_bytes = 64 << 20;                  // for the next ones
    std::uint64_t stored_bytes = 256 << 20;                       // of mail that no receive has met
    std::uint64_t early_bytes = std::uint64_t{1} << 30;  // of messages of a job that come before their time
    std::uint64_t visit_bytes = 256 << 20;  // of operands and results on their way to and from windows
    // After so much at windows in a round, what is not small waits for the next one (onesided_turns.cpp).
    std::uint64_t round_pieces = 1024, round_bytes = 1 << 20;
};

struct Counters {
    std::uint64_t instances_started = 0, instances_done = 0, instances_failed = 0;
    std::uint64_t bytes_sent = 0, bytes_received = 0, bytes_local = 0;
    std::uint64_t messages_sent = 0, messages_received = 0;
    std::uint64_t messages_refused = 0;  // of strangers, or for what the sender has no part in
    std::uint64_t bytes_reduced = 0;
    std::uint64_t most_visit_bytes = 0;                         // at one time
    std::uint64_t most_round_pieces = 0, most_round_bytes = 0;  // at windows
};

// Names a message between two ranks of a team. Both ends choose it; it is used once at a time.
struct MailKey {
    std::uint64_t high = 0, low = 0;
    friend bool operator==(const MailKey&, const MailKey&) = default;
};

class Session;  // a host rank, as the engine sees it
class Team;     // a team, seen from one session's rank

class Window;  // memory of one session's rank that the ranks of its team reach, seen from that rank

// Where a member of a team is served.
struct Member {
    ProxyId proxy = 0;
    std::uint32_t job_rank = 0;
};

// What a finished basic receive learned; `status` and this are valid when its completion is called.
struct MessageInfo {
    std::uint32_t source = 0;
    std::uint32_t tag = 0;
    std::uint64_t bytes = 0;
};

// An operation on a window. Operands of at most rma::inline_bytes may be given in `inlined` instead of
// `origin`. Segments are pieces of the target, in the order of the operands; none: `bytes` at `offset`.
struct OneSidedCall {
    rma::OpKind kind = rma::OpKind::put;
    schedule::DataType type = schedule::DataType::none;  // of updates
    std::uint8_t reduction = 0;                          // schedule::Reduction, rma::replace or rma::no_op
    std::uint32_t target = 0;
    std::uint64_t offset = 0, bytes = 0;
    memory::HostRange origin, result;
    bool watched = false;  // its error is its own: no flush tells of it
    bool ordered = false;  // it, and what follows, after all before it on this target
    std::vector<std::byte> inlined;
    std::vector<rma::Segment> segments;
};
constexpr std::uint32_t every_target = UINT32_MAX;

// An operation on a window that reached this engine without the origin's (rma/direct.h), as it was said.
struct DirectOperation {
    JobId job;
    std::uint64_t team = 0, window = 0;
    std::uint32_t dest = 0;                    // rank of the target in the team
    std::uint32_t origin = 0, origin_job = 0;  // that of the caller, as he says, and in the job, as is proved
    std::uint8_t operation = 0, type = 0, reduction = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t element = 0,
                  stride = 0;  // of a strided put or get, in bytes; 0: the bytes lie side by side
    std::span<const std::byte> operands;
};

class Engine final : public transport::Handler {
  public:
    Engine(transport::Transport& transport, ProxyId self, const Config& config = {});
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
    // Number of instances, basic operations and mail of the session that are not done, of its calls on
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

    // Mail: a message meets the receive with its source and key, in whatever order they come. The send is
    // done when its receive, or by mail_store() the engine there, has taken it; a second one with the key of
    // one that waits is Status::invalid.
    Status mail_send(Team& team, const memory::HostRange& buffer, std::uint32_t dest, const MailKey& key,
                     Completion* done);
    Status mail_recv(Team& team, const memory::HostRange& buffer, std::uint32_t source, const MailKey& key,
                     MessageInfo* info, Completion* done);
    // The receive ends with Status::canceled if no message has met it; else nothing happens.
    void mail_cancel(Team& team, std::uint32_t source, const MailKey& key);
    // Asks the engine that serves `dest` to take the message of this key in, up to Config::stored_bytes for
    // all, if no receive has met it. Then the send is done.
    void mail_store(Team& team, std::uint32_t dest, const MailKey& key);

    // Windows (onesided.h). Every rank of the team makes its own under the same id, before any rank uses it.
    // `memory` is what it exposes at offset 0, nothing if it has no bytes; a dynamic one exposes what is
    // attached, each range at `begin`.
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
