#include "proxy/target_hosts.h"

#include "base/log.h"
#include "memory/cma.h"
#include "target/shared_line.h"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace offpath::proxy {
namespace {

std::uint32_t cpus_for(const kernel_host::HostConfig& config) {
    if (!config.cpus.empty()) return static_cast<std::uint32_t>(config.cpus.size());
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&cpus)) : 1;
}

std::string name_of(const Newcomer& newcomer) {
    return newcomer.remote != nullptr
               ? fmt::format("pid {} at {}", newcomer.peer.pid, newcomer.remote->address)
               : fmt::format("pid {}", newcomer.peer.pid);
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("code {}", WEXITSTATUS(status));
}

Status send_welcome(Newcomer& newcomer, control::TargetWelcome& welcome, std::span<const int> descriptors) {
    if (newcomer.remote != nullptr)
        welcome.mac = control::handshake_mac(newcomer.remote->secret, newcomer.remote->daemon_nonce,
                                             newcomer.remote->client_nonce, welcome);
    return newcomer.socket.send(welcome, descriptors);
}

}  // namespace

TargetHosts::TargetHosts(TargetSettings settings, int epoll)
    : settings_(std::move(settings)), epoll_(epoll), images_(settings_.image_cache_bytes, epoll) {}

TargetHosts::~TargetHosts() {
    int status = 0;
    for (Host& host : hosts_)
        kernel_host::kill_host(host.pid);
    for (Host& host : hosts_)
        (void)kernel_host::reap_host(host.pid, 0, status);
}

bool TargetHosts::admit(const Newcomer& newcomer, Status& status, std::string& why) const {
    status = Status::access;
    if (newcomer.remote != nullptr) {
        why = "this device runs no target regions of programs on other systems (offpathd --allow-images)";
        if (settings_.encrypt)
            why = "target regions of programs on other systems come in clear, and this device encrypts";
        return settings_.remote && !settings_.encrypt;
    }
    status = Status::unsupported;
    why = "this device runs no code of programs (offpathd --no-kernels)";
    if (!settings_.local) return false;
    status = Status::access;
    why = "the daemon runs as another user than this program";
    return newcomer.peer.uid == geteuid();
}

void TargetHosts::serve(Newcomer newcomer) {
    const std::string name = name_of(newcomer);
    Status status;
    std::string why;
    control::TargetWelcome welcome;
    const bool admitted = admit(newcomer, status, why);
    const kernel_host::HostConfig& config =
        newcomer.remote != nullptr ? settings_.remote_host : settings_.host;
    if (admitted) {
        status = Status::ok;
        utsname facts{};
        uname(&facts);
        welcome.node = settings_.node;
        welcome.architecture = facts.machine;
        welcome.cpus = cpus_for(config);
        welcome.seconds = settings_.seconds;
        const ImageCache& cache = images_.cache();
        welcome.images = {static_cast<std::uint32_t>(cache.images()), cache.bytes(), cache.limit_bytes(),
                          images_.found(), cache.dropped()};
        if (newcomer.hello.purpose == control::Purpose::target_facts) {
            if (const Status sent = send_welcome(newcomer, welcome, {}); sent != Status::ok)
                log::warn(Code::client_lost, "{} does not get this device's facts: {}", name,
                          to_string(sent));
        } else {
            status = start(newcomer, welcome, why);
        }
    }
    if (status == Status::ok) return;
    log::error(Code::target_region, "{}: no target host: {}", name, why);
    (void)newcomer.socket.send(control::Refusal{status, why});
}

Status TargetHosts::start(Newcomer& newcomer, control::TargetWelcome& welcome, std::string& why) {
    if (hosts_.size() >= max_hosts) {
        why = fmt::format("{} programs have target hosts here", hosts_.size());
        return Status::unavailable;
    }
    const bool remote = newcomer.remote != nullptr;
    memory::File line;
    welcome.image_nonce = control::draw_nonce();
    const FileDescriptor images = images_.serve(name_of(newcomer), welcome.image_nonce);
    if (!images) {
        why = "no descriptors left";
        return Status::system;
    }
    std::vector<int> descriptors{newcomer.socket.fd(), images.get()};
    FileDescriptor program;
    if (!remote) {
        program = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, newcomer.peer.pid, 0)));
        if (Status status = target::SharedLine::make_file(line); status != Status::ok) {
            why = "no memory for the line";
            return status;
        }
        descriptors.push_back(line.get());
        // It has none if its number is not known here, as from another PID namespace. Its socket remains.
        if (program) descriptors.push_back(program.get());
        std::string why_not;
        welcome.reads_program = memory::cma_probe(newcomer.peer.pid, newcomer.hello.probe_address,
                                                  newcomer.hello.probe_value, why_not) == Status::ok;
    }
    Host host;
    host.client = name_of(newcomer);
    kernel_host::HostConfig config = remote ? settings_.remote_host : settings_.host;
    const engine::JobId job{newcomer.hello.job_high, newcomer.hello.job_low};
    if (!take_account(remote ? settings_.accounts.get() : nullptr, job, config, why))
        return Status::unavailable;
    host.account = config.user;
    const Status status = kernel_host::spawn_host(
        config,
        {remote ? "tcp" : "shared", std::to_string(welcome.reads_program ? newcomer.peer.pid : 0),
         std::to_string(newcomer.hello.probe_address), std::to_string(newcomer.hello.probe_value),
         std::to_string(settings_.spin_us), settings_.node, settings_.directory},
        descriptors, host.pid, why);
    if (status != Status::ok) return status;
    host.process = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, host.pid, 0)));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = host.process.get();
    epoll_ctl(epoll_, EPOLL_CTL_ADD, host.process.get(), &event);
    host.ticket = std::move(newcomer.ticket);
    log::info("{}: its target regions run in process {}", host.client, host.pid);
    hosts_.push_back(std::move(host));
    const int file = line.get();
    // If this cannot be sent, the host detects that its line is lost.
    (void)send_welcome(newcomer, welcome, remote ? std::span<const int>() : std::span(&file, 1));
    return Status::ok;
}

bool TargetHosts::handle(int fd) {
    return reap(fd) || images_.handle(fd);
}

bool TargetHosts::reap(int fd) {
    const auto host = std::find_if(hosts_.begin(), hosts_.end(),
                                   [&](const Host& each) { return each.process.get() == fd; });
    if (host == hosts_.end()) return false;
    int status = 0;
    if (!kernel_host::reap_host(host->pid, WNOHANG, status)) return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        log::info("{}: process {} of its target regions has ended", host->client, host->pid);
    else
        log::error(Code::target_region, "{}: process {} of its target regions ended with {}", host->client,
                   host->pid, how_it_ended(status));
    epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    hosts_.erase(host);
    return true;
}

}  // namespace offpath::proxy
