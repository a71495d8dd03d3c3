#include "proxy/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "link/choice/transport_choice.h"
#include "proxy/kernel_places.h"
#include "proxy/watch.h"
#include "transport/encrypted/encrypted.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/ucx/ucx_transport.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

namespace offpath::proxy {
namespace {

constexpr std::size_t max_local_handshakes = 1024;

void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

std::string beside_this_program(const char* name) {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).replace_filename(name);
}

}  // namespace

Status Daemon::run(std::string& problem) {
    const Status status = start(problem);
    if (status == Status::ok) serve();
    files_.remove();
    for (auto& proxy : proxies_)
        proxy->stop(why_);
    proxies_.clear();
    return status;
}

Status Daemon::start(std::string& problem) {
    raise_descriptor_limit();
    if (options_.node.empty()) options_.node = control::host_name();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    signals_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!signals_ || !epoll_) {
        problem = std::string("signalfd and epoll: ") + std::strerror(errno);
        return Status::system;
    }
    kernels_.enabled = options_.kernels;
    kernels_.seconds = options_.kernel_seconds;
    kernels_.host.program = beside_this_program("offpath-kernel-host");
    kernels_.host.cpus = options_.cpus;
    kernels_.beside_proxies = !options_.cpus.empty() && options_.proxies >= options_.cpus.size();
    if (Status status = allow_kernels(problem); status != Status::ok) return status;
    prepare_targets();
    if (Status status = start_listening(problem); status != Status::ok) return status;
    std::string why;
    if (status_.open(options_.node, options_.proxies, why) != Status::ok) log::warn(Code::file, "{}", why);
    for (std::uint32_t i = 0; i < options_.proxies; ++i) {
        if (Status status = start_proxy(i, problem); status != Status::ok) return status;
    }
    watch(epoll_.get(), signals_.get());
    if (options_.replace) {
        if (Status status = take_place(problem); status != Status::ok) return status;
    }
    if (files_.listener() >= 0) watch(epoll_.get(), files_.listener());
    listening_ = true;
    if (remote_.listening()) watch(epoll_.get(), remote_.event_fd());
    log::info("{} serves {}{}{} with {} {}", options_.node, files_.path(),
              files_.listener() >= 0 && remote_.listening() ? " and " : "", remote_.name(), options_.proxies,
              options_.proxies == 1 ? "proxy" : "proxies");
    if (options_.ready_fd >= 0) {
        if (write(options_.ready_fd, "1", 1) != 1)
            log::warn(Code::daemon_start, "--ready-fd {}: {}", options_.ready_fd, std::strerror(errno));
        close(options_.ready_fd);
    }
    return Status::ok;
}

Status Daemon::start_listening(std::string& problem) {
    // A successor listens when it is ready. Until then the other daemon does.
    if (!options_.directory.empty() && !options_.replace) {
        if (Status status = files_.create(options_.directory, problem); status != Status::ok) return status;
    }
    if (options_.listen.empty()) return Status::ok;
    control::TcpAddress address;
    control::Key key;
    if (Status status = control::parse_tcp_address(options_.listen, address, problem); status != Status::ok) {
        problem = "--listen: " + problem;
        return status;
    }
    Status status = options_.key_fd >= 0 ? control::read_key_descriptor(options_.key_fd, key, problem)
                                         : control::read_key_file(options_.key_file, key, problem);
    if (options_.key_fd >= 0) close(options_.key_fd);
    if (status == Status::ok)
        status = remote_.open(address, std::move(key), options_.ticket_seconds, problem);
    if (status == Status::ok && !options_.directory.empty())
        status = files_.write_port(remote_.port(), problem);
    return status;
}

Status Daemon::take_place(std::string& problem) {
    pid_t predecessor = 0;
    if (Status status = files_.replace(options_.directory, predecessor, problem); status != Status::ok)
        return status;
    if (predecessor > 0 && kill(predecessor, SIGUSR1) == 0)
        log::info("{} takes the place of pid {}, which ends with its last session", options_.node,
                  predecessor);
    return Status::ok;
}

// Decides which kernels remote hosts may run here, and as which user. Their kernels must not be able to read
// the key, neither from its file nor from this process. A key that came through a pipe has no file and was
// made for this daemon; then the kernels belong to the user who started the daemon.
Status Daemon::allow_kernels(std::string& problem) {
    if (!options_.allow_kernels.empty()) {
        const Status status = parse_kernel_places(options_.allow_kernels, kernels_.remote_places, problem);
        if (status != Status::ok) {
            problem = "--allow-kernels: " + problem;
            return status;
        }
    }
    if (options_.allow_kernels.empty() && !options_.allow_images) return Status::ok;
    return choose_remote_host(options_.allow_kernels.empty() ? "--allow-images" : "--allow-kernels", problem);
}

Status Daemon::choose_remote_host(const char* option, std::string& problem) {
    kernels_.remote_host = kernels_.host;
    kernels_.remote_host.own_symbols = true;
    if (!options_.kernel_user.empty()) {
        const Status status = Accounts::parse(options_.kernel_user, kernels_.accounts, problem);
        if (status != Status::ok) {
            problem = "--kernel-user " + problem;
            return status;
        }
    }
    struct stat key {};
    const int found =
        options_.key_fd >= 0 ? fstat(options_.key_fd, &key) : stat(options_.key_file.c_str(), &key);
    const auto run_as = [&](uid_t user) {
        return kernels_.accounts != nullptr ? kernels_.accounts->contains(user) : user == geteuid();
    };
    if (found != 0 || !S_ISREG(key.st_mode) || (!run_as(key.st_uid) && !run_as(geteuid()))) return Status::ok;
    problem = fmt::format(
        "{}: code of remote hosts would run as user {}, who can read the key; name another user with "
        "--kernel-user",
        option, run_as(key.st_uid) ? key.st_uid : geteuid());
    return Status::access;
}

void Daemon::prepare_targets() {
    TargetSettings settings;
    settings.local = options_.kernels;
    settings.remote = options_.kernels && options_.allow_images;
    settings.encrypt = options_.encrypt;
    settings.host = kernels_.host;
    settings.remote_host = kernels_.remote_host;
    settings.accounts = kernels_.accounts;
    settings.host.program = settings.remote_host.program = beside_this_program("offpath-target-host");
    settings.spin_us = options_.spin_us;
    settings.seconds = kernels_.seconds;
    settings.node = options_.node;
    settings.directory = options_.directory;
    settings.image_cache_bytes = options_.image_cache_mib << 20;
    targets_ = std::make_unique<TargetHosts>(std::move(settings), epoll_.get());
}

Status Daemon::start_proxy(std::uint32_t index, std::string& problem) {
    ProxyConfig config;
    config.node = options_.node;
    config.index = index;
    config.spin_us = options_.spin_us;
    config.stored_bytes = options_.store_mib << 20;
    if (!options_.cpus.empty()) config.cpu = options_.cpus[index % options_.cpus.size()];
    config.kernels = kernels_;
    config.shown = status_.part(index);
    transport::UcxConfig ucx;
    ucx.net_devices = options_.net_devices;
    // A process that is killed while it writes to a queue of UCX's shared memory blocks that queue for all
    // other writers. Proxies of one daemon need no such queue, and other daemons are usually on other nodes.
    if (std::getenv("UCX_TLS") == nullptr) ucx.tls = "^posix,sysv";
    HostSide hosts;
    if (remote_.listening()) {
        if (Status status = open_host_side(index == 0, hosts, problem); status != Status::ok) return status;
    }
    // Encrypted payloads must come here. A fabric on other network devices knows nothing of the imports.
    const bool moves_imports =
        imports_ && !options_.encrypt &&
        (options_.host_devices.empty() || options_.host_devices == options_.net_devices);
    if (moves_imports) ucx.imports = transport::MemorySource::exported;
    std::unique_ptr<transport::Transport> fabric;
    Status status = transport::make_ucx_transport(ucx, fabric, problem);
    if (status != Status::ok && moves_imports) {
        log::warn(Code::slower_way, "memory that hosts export is staged: {}", problem);
        ucx.imports = transport::MemorySource::none;
        status = transport::make_ucx_transport(ucx, fabric, problem);
    }
    const bool by_fabric = ucx.imports != transport::MemorySource::none;
    if (status == Status::ok && imports_)
        status = by_fabric ? transport::open_device_memory(*fabric, hosts.memory, problem)
                           : transport::open_device_memory(host_config(), hosts.memory, problem);
    if (status != Status::ok) return status;
    if (options_.encrypt) fabric = transport::make_encrypted_transport(std::move(fabric));
    if (index == 0) log::info("fabric: {}", fabric->describe());
    config.direct = open_direct(*fabric, index == 0);
    proxies_.push_back(std::make_unique<Proxy>(std::move(config), std::move(fabric), std::move(hosts)));
    return proxies_.back()->start(problem);
}

// Returns null if every rank reaches this proxy through its own proxy.
std::unique_ptr<transport::Transport> Daemon::open_direct(const transport::Transport& fabric, bool first) {
    std::unique_ptr<transport::Transport> made;
    const bool wanted =
        options_.direct == Direct::on || (options_.direct == Direct::automatic && fabric.only_streams());
    if (!wanted || options_.directory.empty()) return made;
    transport::TcpConfig config;
    const char* const devices = std::getenv("UCX_NET_DEVICES");
    config.devices = !options_.net_devices.empty() || devices == nullptr ? options_.net_devices : devices;
    std::string problem;
    if (transport::make_tcp_transport(config, made, problem) != Status::ok) {
        made.reset();
        if (first) log::warn(Code::slower_way, "ranks of other proxies come by their own only: {}", problem);
        return made;
    }
    if (options_.encrypt) made = transport::make_encrypted_transport(std::move(made));
    if (first) log::info("direct: {}", made->describe());
    return made;
}

Status Daemon::open_host_side(bool first, HostSide& hosts, std::string& problem) {
    const transport::UcxConfig ucx = host_config();
    if (Status status = link::open_device_links(ucx.net_devices, hosts.links, problem); status != Status::ok)
        return status;
    if (first) {
        const transport::ExportedMemoryProbe probe = transport::probe_exported_memory(ucx);
        imports_ = probe.works;
        log::info("hosts: {}; memory {}, xgvmi {}", hosts.links->describe(),
                  imports_ ? "by xgvmi or staged" : "staged", probe.result);
    }
    return Status::ok;
}

// Of the network to the hosts, whose memory is imported.
transport::UcxConfig Daemon::host_config() const {
    transport::UcxConfig ucx;
    ucx.net_devices = options_.host_devices.empty() ? options_.net_devices : options_.host_devices;
    ucx.imports = transport::MemorySource::exported;
    return ucx;
}

void Daemon::serve() {
    while (true) {
        epoll_event events[64];
        const int count = epoll_wait(epoll_.get(), events, 64, targets_->images().busy() ? 0 : timeout_ms());
        for (int i = 0; i < count; ++i) {
            if (events[i].data.fd != signals_.get())
                survive_lack_of_memory([&] { handle_event(events[i].data.fd); });
            else if (handle_signal())
                return;
        }
        survive_lack_of_memory([&] {
            targets_->images().work();
            expire_handshakes();
            remote_.expire(now_ns());
        });
        if (is_drained()) {
            log::info("the last session has ended: the end");
            return;
        }
        if (idle_too_long()) {
            log::info("idle for {} s: the end", options_.idle_exit_s);
            return;
        }
    }
}

void Daemon::handle_event(int fd) {
    if (fd == files_.listener()) return accept_clients();
    if (fd == remote_.event_fd())
        return remote_.serve(now_ns(), [this](Newcomer newcomer) { place(std::move(newcomer)); });
    if (targets_->handle(fd)) return;
    const auto found = std::find_if(handshakes_.begin(), handshakes_.end(),
                                    [&](const LocalHandshake& h) { return h.socket.fd() == fd; });
    if (found == handshakes_.end()) return;
    LocalHandshake handshake = std::move(*found);
    handshakes_.erase(found);
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    greet(handshake);
}

// A client for which there is no memory loses its connection, and reports that. The sessions of the others
// go on.
template <typename Work>
void Daemon::survive_lack_of_memory(Work work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        try {
            if (refusals_.may_speak(now_ns()))
                log::error(Code::resources, "no memory for another client{}", refusals_.left_out());
        } catch (const std::bad_alloc&) {
            // There is none for a line of the log either.
        }
    }
}

// True: the daemon ends.
bool Daemon::handle_signal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != sizeof info) return false;
    if (info.ssi_signo == SIGUSR1) {
        drain();
        return false;
    }
    why_ = fmt::format("offpathd on {} was stopped by {}", options_.node,
                       info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
    log::info("{}", why_);
    return true;
}

void Daemon::drain() {
    if (draining_) return;
    draining_ = true;
    if (files_.listener() >= 0) {
        // Clients that have connected are served. If the descriptors run out, the others are closed, and
        // know it.
        constexpr int enough = 64;
        for (int i = 0; i < enough; ++i)
            accept_clients();
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, files_.listener(), nullptr);
    }
    files_.remove();
    remote_.stop_listening();
    log::info("no new clients from now on; {} sessions go on", attached());
}

bool Daemon::is_drained() const {
    return draining_ && handshakes_.empty() && !remote_.has_handshakes() && attached() == 0;
}

void Daemon::accept_clients() {
    for (int i = 0; i < 64; ++i) {
        FileDescriptor client(accept4(files_.listener(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!client) {
            if (errno == EMFILE || errno == ENFILE) {
                log::error(Code::resources, "no descriptors left for new clients; they wait");
                epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, files_.listener(), nullptr);
                listening_ = false;
            }
            return;
        }
        control::Credentials peer;
        if (control::peer_credentials(client.get(), peer) != Status::ok) {
            refused(0, std::string("the system does not say who connects: ") + std::strerror(errno));
            continue;
        }
        if (peer.uid != geteuid() && peer.uid != 0) {
            const std::string why =
                fmt::format("this offpathd serves user {} only, not {}", geteuid(), peer.uid);
            refused(peer.pid, why);
            (void)control::send_message(client.get(), control::Refusal{Status::access, why});
            continue;
        }
        if (handshakes_.size() >= max_local_handshakes) {
            refused(peer.pid, fmt::format("{} others have not said hello yet", handshakes_.size()));
            (void)control::send_message(client.get(),
                                        control::Refusal{Status::unavailable, "too many clients at once"});
            continue;
        }
        watch(epoll_.get(), client.get());
        handshakes_.push_back(
            {control::MessageSocket::over_unix(std::move(client)), now_ns() + control::hello_timeout_ns});
    }
}

void Daemon::refused(pid_t pid, const std::string& why) {
    if (refusals_.may_speak(now_ns()))
        log::error(Code::refused, "pid {} was refused: {}{}", pid, why, refusals_.left_out());
}

void Daemon::greet(LocalHandshake& handshake) {
    Newcomer newcomer;
    (void)control::peer_credentials(handshake.socket.fd(), newcomer.peer);
    const auto refuse = [&](Status status, const std::string& why) {
        refused(newcomer.peer.pid, why);
        (void)handshake.socket.send(control::Refusal{status, why});
    };
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    const Status status = handshake.socket.receive(0, message, descriptors, problem);
    if (status == Status::peer_lost) {
        log::debug("pid {} connected and went away", newcomer.peer.pid);
        return;
    }
    if (status != Status::ok) {
        refuse(status == Status::version ? status : Status::protocol, problem);
        return;
    }
    const auto* hello = std::get_if<control::Hello>(&message);
    if (hello == nullptr || !descriptors.empty()) {
        refuse(Status::protocol, "the first message must be a hello without descriptors");
        return;
    }
    newcomer.hello = *hello;
    newcomer.socket = std::move(handshake.socket);
    place(std::move(newcomer));
}

void Daemon::place(Newcomer newcomer) {
    if (newcomer.hello.purpose != control::Purpose::session) return targets_->serve(std::move(newcomer));
    const auto least = std::min_element(proxies_.begin(), proxies_.end(),
                                        [](const auto& a, const auto& b) { return a->load() < b->load(); });
    (*least)->take(std::move(newcomer));
}

void Daemon::expire_handshakes() {
    if (handshakes_.empty()) return;
    const std::uint64_t now = now_ns();
    std::erase_if(handshakes_, [&](const LocalHandshake& handshake) {
        if (handshake.deadline_ns > now) return false;
        control::Credentials peer;
        (void)control::peer_credentials(handshake.socket.fd(), peer);
        refused(peer.pid, fmt::format("it said nothing for {} s", control::hello_timeout_ns / 1'000'000'000));
        return true;
    });
}

std::uint32_t Daemon::attached() const {
    auto count = static_cast<std::uint32_t>(targets_->count());
    for (const auto& proxy : proxies_)
        count += proxy->load();
    return count;
}

bool Daemon::idle_too_long() {
    if (!listening_ && files_.listener() >= 0) {
        watch(epoll_.get(), files_.listener());
        listening_ = true;
    }
    if (options_.idle_exit_s <= 0) return false;
    const std::uint64_t now = now_ns();
    if (attached() > 0 || !handshakes_.empty() || idle_since_ns_ == 0) idle_since_ns_ = now;
    return static_cast<double>(now - idle_since_ns_) > options_.idle_exit_s * 1e9;
}

int Daemon::timeout_ms() const {
    if (!listening_) return 100;
    return options_.idle_exit_s > 0 || draining_ || !handshakes_.empty() ? 250 : remote_.timeout_ms();
}

}  // namespace offpath::proxy
