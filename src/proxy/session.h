// Session: one client as its proxy sees it: its socket, channel, memory, teams and schedules, and its started
// operations. It turns commands and messages into calls on the engine, and the engine's completions into
// completion words. Everything from the client is checked here. A client that sends invalid data loses its
// session; other clients are not affected.
//
// Ownership: the proxy owns sessions; a session borrows the engine. Threads: the proxy's thread only. Life:
// open() -> [drain, read_socket, deliver]* -> end() (the client's request, death or fault) -> close() until
// it returns true.
#pragma once

#include "base/clock.h"
#include "control/channel.h"
#include "control/message_socket.h"
#include "engine/engine.h"
#include "memory/session_memory.h"
#include "proxy/direct_port.h"
#include "proxy/host_side.h"
#include "proxy/kernel_streams.h"
#include "proxy/newcomer.h"
#include "proxy/schedule_store.h"
#include "trace/trace.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace offpath::control {
class SharedProxyChannel;
}

namespace offpath::proxy {

inline memory::HostRange to_range(const control::BufferRange& range) {
    return {range.region, range.address, range.bytes};
}

// What the sessions of a proxy borrow from it.
struct SessionSetting {
    engine::Engine& engine;
    const Identity& identity;
    const HostSide& hosts;
    DirectPort* direct;  // null: ranks reach this proxy through their own only
    const KernelSettings& kernels;
    const Clock& clock;
    int epoll;
};

class Session {
  public:
    // Makes everything that a session needs and sends the Welcome. Null after a Refusal.
    static std::unique_ptr<Session> open(const SessionSetting& setting, Newcomer newcomer);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Executes at most `limit` commands. Returns how many it executed.
    unsigned drain(unsigned limit);
    // Serves what has arrived on the socket.
    void read_socket();
    // The client's process has ended, though another process, such as its child, may still hold its end of
    // the socket.
    void process_ended();
    // Remote clients: keeps the socket alive and detects a dead client. Called periodically.
    void tend(std::uint64_t now_ns);
    // Advances staged transfers and kernels.
    unsigned progress_memory();
    // Wakes a sleeping client for its completions, and acknowledges revocations that have become possible.
    void deliver();

    bool ended() const { return ended_; }
    // Ends the session. With `tell`, the client is told why.
    void end(Status reason, std::string_view why, bool tell);
    // Ends the session to free its memory, so that the device and its other sessions can go on.
    void end_for_memory();
    // After end(): true once the engine and the memory have released everything; the session may then be
    // destroyed.
    bool close();

    bool remote() const { return socket_.remote(); }
    int socket() const { return socket_.fd(); }
    // Readable when the client's process has ended; -1: that process is not visible from here.
    int process_event() const { return process_.get(); }
    int doorbell() const { return channel_->doorbell(); }
    int memory_event() const { return memory_->event_fd(); }
    // Whether the descriptor belongs to its kernels, and then takes note of its event. They watch their
    // descriptors themselves, because these come and go.
    bool serve_kernels(int fd) { return kernels_ != nullptr && kernels_->event(fd); }
    bool kernels_run() const { return kernels_ != nullptr && kernels_->busy(); }
    // When there is work although no event has come; UINT64_MAX: never.
    std::uint64_t deadline_ns() const { return kernels_ != nullptr ? kernels_->deadline_ns() : UINT64_MAX; }
    // Before sleeping: false when there is work to do. The next round of work ends the sleep state.
    bool prepare_sleep();
    void end_sleep() { channel_->end_sleep(); }
    void clear_doorbell() { channel_->clear_doorbell(); }

    const std::string& name() const { return name_; }
    // Operations that the client has started, and those of them that have not ended.
    std::uint64_t started() const { return started_; }
    std::uint64_t outstanding() const { return std::uint64_t{outstanding_} + unwatched_; }

  private:
    // A started operation: the engine's completion record for it.
    struct ClientOperation : Completion {
        Session* session = nullptr;
        StoredSchedule* schedule = nullptr;  // null: a basic primitive
        std::uint32_t slot = 0;
        bool receives = false;
        std::uint64_t traced = 0;  // its number in the trace; 0: it is not traced
        engine::MessageInfo message;
        std::vector<memory::HostRange> pinned;
    };
    // A team, or the reason why it does not exist.
    struct TeamEntry {
        engine::Team* team = nullptr;
        Status failure = Status::ok;
        std::uint32_t rank = 0, size = 0;
    };
    // Memory for teams and windows grows with their ranks. A client may have max_members in total; each
    // member of a window counts window_members times.
    static constexpr std::uint64_t max_members = 1 << 22, window_members = 8;

    // A window, or the reason why it does not exist, and the regions that it pins.
    struct WindowEntry {
        engine::Window* window = nullptr;
        Status failure = Status::ok;
        std::uint64_t members = 0;
        std::vector<memory::HostRange> pinned;
        std::map<std::uint64_t, std::vector<memory::HostRange>> attached;  // by the offset where they begin
    };

    // The parts of a session, which use either shared memory or a link.
    struct SessionParts {
        std::unique_ptr<link::DeviceLink> link;
        std::unique_ptr<control::ProxyChannel> channel;
        const control::SharedProxyChannel* shared = nullptr;  // the same channel; null: over a link
        std::unique_ptr<memory::SessionMemory> memory;
        std::vector<FileDescriptor> for_client;
        std::uint64_t token = 0;
        engine::Session* session = nullptr;
    };
    static Status make_local(const Newcomer& newcomer, memory::SessionMemoryConfig config,
                             SessionParts& parts, std::string& problem);
    static Status make_remote(const Newcomer& newcomer, const HostSide& hosts,
                              memory::SessionMemoryConfig config, SessionParts& parts, std::string& problem);
    static Status send_welcome(Newcomer& newcomer, const SessionSetting& setting, SessionParts& parts);

    Session(const SessionSetting& setting, Newcomer newcomer, SessionParts parts);

    // The execution of commands. A false return ends the session with problem_.
    // team_commands.cpp
    bool execute(const control::AddProxy& command);
    bool execute(const control::Ranks& command);
    bool execute(const control::CreateTeam& command);
    bool execute(const control::DestroyTeam& command);
    void make_team(std::uint64_t id, TeamEntry& entry);
    TeamEntry* find_team(std::uint64_t id);
    // schedule_commands.cpp
    bool execute(const control::SchedulePart& command);
    bool execute(const control::ForgetSchedule& command);
    bool execute(const control::Start& command);
    bool start_whole(const control::Start& command);
    Status start(const control::Start& command, const TeamEntry& team, StoredSchedule& schedule,
                 ClientOperation& operation);
    // message_commands.cpp
    bool execute(const control::BasicSend& command);
    bool execute(const control::BasicRecv& command);
    bool execute(const control::BasicProbe& command);
    bool execute(const control::KeyedSend& command);
    bool execute(const control::KeyedRecv& command);
    bool execute(const control::KeyedCancel& command);
    bool execute(const control::KeyedStore& command);
    // window_commands.cpp
    bool execute(const control::CreateWindow& command);
    bool execute(const control::DestroyWindow& command);
    bool execute(const control::AttachWindow& command);
    bool execute(const control::DetachWindow& command);
    bool execute(const control::WindowOperation& command);
    bool execute(const control::FlushWindow& command);
    bool execute(const control::KeepLedger& command);
    Status make_window(const control::CreateWindow& command, const TeamEntry& team,
                       ClientOperation& operation, WindowEntry& entry);
    Status start(const control::WindowOperation& command, WindowEntry& entry, ClientOperation& operation);
    bool check_unwatched();
    WindowEntry* find_window(std::uint64_t team, std::uint64_t window);
    // kernel_commands.cpp
    bool execute(const control::Compute& command);
    bool execute(const control::UnloadKernel& command);
    bool execute(const control::ForgetPages& command) {
        memory_->forget_pages(command.address, command.bytes);
        return true;
    }
    void load_kernel(const control::LoadKernel& message);
    void answer_about_texts(const control::KernelTextsAsked& message);
    bool admit_kernel(Status& status, std::string& why) const;
    bool check_kernel(std::uint64_t kernel);

    // operations.cpp
    bool check_slot(std::uint32_t slot);
    ClientOperation& take_operation(std::uint32_t slot);
    bool pin(ClientOperation& operation, const memory::HostRange& range);
    void settle(ClientOperation& operation, Status status);
    // Begins the operation in the trace, if there is one.
    void note_begin(ClientOperation& operation, trace::Name& name, std::uint64_t bytes) const {
        if (trace::on()) [[unlikely]]
            begin_trace(operation, name, bytes, trace::new_id());
    }
    // Call it while trace::on().
    void begin_trace(ClientOperation& operation, trace::Name& name, std::uint64_t bytes,
                     std::uint64_t id) const;
    static void on_done(Completion* completion, Status status);
    // Takes an operation for a slot that has been checked, and calls `start` with it. `start` returns what
    // the engine returns; unless that is in_progress, the operation is over.
    template <typename Start>
    void begin(std::uint32_t completion, Start&& start) {
        ClientOperation& operation = take_operation(completion);
        const Status status = start(operation);
        if (status != Status::in_progress) settle(operation, status);
    }
    // False: there is no such slot.
    template <typename Start>
    bool perform(std::uint32_t completion, Start&& start) {
        if (!check_slot(completion)) return false;
        begin(completion, start);
        return true;
    }
    // An operation on a team or a window. `start` is called only if that could be made. False: there is no
    // such team or window (null), or no such slot.
    template <typename Entry, typename Start>
    bool perform_on(const Entry* entry, std::uint32_t completion, Start&& start) {
        return entry != nullptr && perform(completion, [&](ClientOperation& operation) {
                   return entry->failure == Status::ok ? start(operation) : entry->failure;
               });
    }

    void answer_message(const control::Message& message, std::vector<FileDescriptor> descriptors);
    void register_region(const control::RegisterRegion& message, std::vector<FileDescriptor> descriptors);
    void register_exported(const control::RegisterExported& message);
    void share_pages(const control::SharePages& message, std::vector<FileDescriptor> descriptors);
    void revoke_region(std::uint64_t id);
    void reply(const control::Message& message);

    engine::Engine& engine_;
    DirectPort* const direct_;  // null: ranks reach this one through their own proxies only
    const engine::JobId job_;
    TicketUse ticket_;
    std::uint64_t members_in_use_ = 0;
    control::MessageSocket socket_;
    const FileDescriptor process_;            // pidfd
    std::unique_ptr<link::DeviceLink> link_;  // remote only
    std::unique_ptr<control::ProxyChannel> channel_;
    const control::SharedProxyChannel* const shared_channel_;  // null: over a link
    std::unique_ptr<memory::SessionMemory> memory_;
    engine::Session* session_;
    std::string name_;
    const std::uint32_t job_rank_;
    const KernelSettings& kernel_settings_;
    const Clock& clock_;
    const int epoll_;
    const control::Credentials peer_;
    std::unique_ptr<KernelStreams> kernels_;  // made for the first kernel

    std::vector<engine::ProxyId> proxies_;  // by job rank; 0: not told
    std::unordered_map<std::uint64_t, TeamEntry> teams_;
    std::uint64_t teams_made_ = 0;  // for the log
    ScheduleStore schedules_;
    struct TeamDraft {
        std::uint64_t id = 0;
        std::uint32_t rank = 0;
        std::vector<std::uint32_t> ranks;
    } team_draft_;
    std::vector<memory::HostRange> start_draft_;
    std::vector<engine::Member> members_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, WindowEntry> windows_;  // by team and window
    std::vector<rma::Segment> segment_draft_;

    std::deque<ClientOperation> operations_;  // the pool
    std::vector<ClientOperation*> free_operations_;
    std::uint64_t started_ = 0;
    std::uint32_t outstanding_ = 0;
    std::uint32_t unwatched_ = 0;          // operations without a completion
    std::vector<std::uint64_t> revoking_;  // regions whose last use has not ended
    bool completed_some_ = false;
    bool ended_ = false, abandoned_ = false;
    std::uint64_t ended_ns_ = 0;
    Status reason_ = Status::ok;
    std::string problem_;
};

}  // namespace offpath::proxy
