#include "client/attach.h"

#include "base/environment.h"
#include "base/own_descriptors.h"
#include "base/patience.h"
#include "control/shared_channel.h"
#include "memory/cma.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace offpath::client {
namespace {

constexpr int local_answer_timeout_ms = 8000;
constexpr auto autostart_patience = std::chrono::seconds(8);
// A launcher that starts successors of daemons has this long before a rank does.
constexpr auto successor_patience = std::chrono::seconds(1);

constexpr std::uint64_t most_wait_s = 3600;
constexpr int most_greetings = 3;
// For the successor of a daemon that has died in a greeting, where ranks start none.
constexpr std::uint64_t successor_wait_s = 2;

// The daemon reads this word to find out whether it can read this process's memory.
volatile const std::uint64_t probe_word = 0x70617468666f2121;

control::BackEndRequest parse_back_end(const std::string& text) {
    if (text == "auto") return control::BackEndRequest::automatic;
    if (text == "map") return control::BackEndRequest::map;
    if (text == "cma") return control::BackEndRequest::cma;
    if (text == "staged") return control::BackEndRequest::staged;
    throw std::invalid_argument(
        fmt::format("OFFPATH_BACK_END='{}': auto, map, cma or staged is accepted", text));
}

void wait_for_daemon(const std::string& path, std::chrono::seconds patience, Status& status,
                     FileDescriptor& socket, std::string& problem) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (status == Status::unavailable && std::chrono::steady_clock::now() < give_up) {
        status = control::connect_to(path, socket, problem);
        if (status == Status::unavailable) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

Status connect(const AttachOptions& options, FileDescriptor& socket, std::string& problem) {
    const std::string path = control::socket_path(options.directory);
    Status status = control::connect_to(path, socket, problem);
    if (options.again) {
        wait_for_daemon(path, options.autostart ? successor_patience : autostart_patience, status, socket,
                        problem);
    } else if (!options.autostart) {
        wait_for_daemon(path, std::chrono::seconds(options.daemon_wait_s), status, socket, problem);
    }
    if (status != Status::unavailable || !options.autostart) return status;
    if (Status may = may_start_daemon(options.directory, problem); may != Status::ok) return may;
    // The lowest local rank may be on another node, as far as the launcher knows.
    if (options.local_rank == 0 || options.again) {
        if (Status started = start_daemon(options.directory, problem); started != Status::ok) return started;
    }
    wait_for_daemon(path, autostart_patience, status, socket, problem);
    return status;
}

Status take_welcome(Attachment& attachment, std::vector<FileDescriptor> descriptors, pid_t daemon,
                    std::string& problem) {
    const std::size_t expected = attachment.welcome.staging ? 4 : 2;
    if (descriptors.size() != expected) {
        problem = fmt::format("the daemon sent {} descriptors instead of {}", descriptors.size(), expected);
        return Status::protocol;
    }
    control::ChannelMemory memory;
    if (Status status = control::ChannelMemory::map(descriptors[0].get(), memory); status != Status::ok) {
        problem = "the daemon's channel cannot be mapped";
        return status;
    }
    if (attachment.welcome.staging) {
        memory::StagingFiles files;
        files.area = memory::File(descriptors[2].release());
        files.bell = memory::File(descriptors[3].release());
        if (Status status = memory::StagingAgent::start(std::move(files), attachment.agent, problem);
            status != Status::ok)
            return status;
    }
    attachment.daemon = daemon;
    // If the daemon is in another PID namespace, its PIDs mean nothing here.
    if (static_cast<std::uint32_t>(daemon) != attachment.welcome.daemon_pid) daemon = 0;
    attachment.channel =
        std::make_unique<control::SharedClientChannel>(std::move(memory), std::move(descriptors[1]), daemon);
    return Status::ok;
}

}  // namespace

AttachOptions AttachOptions::from_environment(const char* directory) {
    AttachOptions options;
    options.directory = directory != nullptr && *directory != '\0'
                            ? std::string(directory)
                            : environment::text("OFFPATH_DIR", fmt::format("/tmp/offpath-{}", geteuid()));
    options.devices = environment::text("OFFPATH_DEVICES", "");
    options.host_devices = environment::text("OFFPATH_HOST_DEVICES", "");
    options.encrypt = environment::flag("OFFPATH_ENCRYPT", false);
    options.key_file = environment::text("OFFPATH_KEY_FILE", "");
    options.back_end = parse_back_end(environment::text("OFFPATH_BACK_END", "auto"));
    options.autostart = environment::flag("OFFPATH_AUTOSTART", false);
    options.daemon_wait_s = environment::number("OFFPATH_DAEMON_WAIT_S", 0);
    if (options.daemon_wait_s > most_wait_s)
        throw std::invalid_argument(fmt::format("OFFPATH_DAEMON_WAIT_S='{}': 0 to {} is accepted",
                                                options.daemon_wait_s, most_wait_s));
    // These report an unusable value now.
    (void)lost_after_ns();
    (void)environment::flag("OFFPATH_END_STOPPED", true);
    return options;
}

control::Hello AttachOptions::hello() const {
    control::Hello hello;
    hello.job_high = job_high;
    hello.job_low = job_low;
    hello.job_rank = rank;
    hello.job_size = size;
    hello.pid = static_cast<std::uint32_t>(getpid());
    hello.back_end = back_end;
    return hello;
}

namespace {

Status attach_once(const AttachOptions& options, Attachment& attachment, control::Credentials& daemon,
                   std::string& problem) {
    Attachment made;
    made.device = control::socket_path(options.directory);
    FileDescriptor connection;
    if (Status status = connect(options, connection, problem); status != Status::ok) return status;
    if (Status status = control::peer_credentials(connection.get(), daemon); status != Status::ok)
        return status;
    if (daemon.uid != geteuid() && daemon.uid != 0) {
        problem = fmt::format("the daemon at {} is user {}'s, not ours",
                              control::socket_path(options.directory), daemon.uid);
        return Status::access;
    }

    control::Hello hello = options.hello();
    hello.probe_address = reinterpret_cast<std::uint64_t>(&probe_word);
    hello.probe_value = probe_word;
    hello.fabric = options.fabric;
    auto socket = control::MessageSocket::over_unix(std::move(connection));
    Status status = socket.send(hello);
    control::wipe(hello.fabric);
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    if (status == Status::ok || status == Status::peer_lost)
        status = socket.receive(local_answer_timeout_ms, message, descriptors, problem);
    if (status != Status::ok) {
        if (problem.empty()) problem = to_string(status);
        problem = fmt::format("the daemon at {}: {}", control::socket_path(options.directory), problem);
        return status;
    }
    if (const auto* refusal = std::get_if<control::Refusal>(&message)) {
        problem = fmt::format("the daemon at {} refused: {}", control::socket_path(options.directory),
                              refusal->text);
        return is_error(refusal->status) ? refusal->status : Status::unavailable;
    }
    auto* welcome = std::get_if<control::Welcome>(&message);
    if (welcome == nullptr) {
        problem = "the daemon answered with something else than a welcome";
        return Status::protocol;
    }
    made.welcome = std::move(*welcome);
    if (status = take_welcome(made, std::move(descriptors), daemon.pid, problem); status != Status::ok)
        return status;
    made.line = std::make_unique<DeviceLine>(std::move(socket));
    attachment = std::move(made);
    return Status::ok;
}

bool cma_refused(const AttachOptions& options, Status status, const Attachment& attachment) {
    if (options.back_end == control::BackEndRequest::staged) return false;
    if (options.back_end == control::BackEndRequest::cma) return status == Status::unsupported;
    return status == Status::ok && attachment.welcome.staging;
}

}  // namespace

// Yama lets one tracer into a process. The host's MPI may already have let in all processes of the user
// (PR_SET_PTRACER_ANY), because it needs that for its own copies between ranks. So this process names the
// daemon as its tracer only if the daemon is refused otherwise. In that case nothing but a debugger can have
// been let in before.
Status attach(const AttachOptions& options, Attachment& attachment, std::string& problem) {
    own_descriptors::replace_in_children();
    if (options.remote()) return attach_remote(options, attachment, problem);
    Attachment made;
    control::Credentials daemon;
    Status status = attach_once(options, made, daemon, problem);
    AttachOptions later = options;
    later.again = options.again || options.autostart;
    later.daemon_wait_s = std::max(options.daemon_wait_s, successor_wait_s);
    for (int greetings = 1; status == Status::peer_lost && greetings < most_greetings; ++greetings) {
        made = Attachment();
        status = attach_once(later, made, daemon, problem);
    }
    if (status == Status::peer_lost) status = Status::unavailable;
    if (cma_refused(options, status, made) && daemon.pid > 0 && memory::allow_cma(daemon.pid)) {
        if (status == Status::ok && made.line->send(control::Goodbye{}) == Status::ok)
            made.line->wait_closed(local_answer_timeout_ms);
        made = Attachment();
        status = attach_once(options, made, daemon, problem);
    }
    if (status == Status::ok) attachment = std::move(made);
    return status;
}

}  // namespace offpath::client
