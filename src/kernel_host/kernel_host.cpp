#include "kernel_host/kernel_host.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace offpath::kernel_host {

Status KernelHost::start(const HostConfig& config, std::unique_ptr<KernelHost>& host, std::string& problem) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        problem = fmt::format("no socket for a kernel host: {}", std::strerror(errno));
        return Status::system;
    }
    FileDescriptor mine(ends[0]), its(ends[1]);
    memory::File shared;
    memory::Mapping mapping;
    Status status = memory::make_memory_file("offpath-kernel-host", sizeof(Shared), shared);
    if (status == Status::ok) status = memory::Mapping::map(shared.get(), sizeof(Shared), mapping);
    // Descriptors that are not where they have to go: a copy onto itself would stay closed by exec.
    FileDescriptor high_socket(fcntl(its.get(), F_DUPFD_CLOEXEC, 10));
    FileDescriptor high_shared(fcntl(shared.get(), F_DUPFD_CLOEXEC, 10));
    if (status != Status::ok || !high_socket || !high_shared) {
        problem = "no memory or descriptors for a kernel host";
        return status != Status::ok ? status : Status::system;
    }

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, high_socket.get(), socket_fd);
    posix_spawn_file_actions_adddup2(&files, high_shared.get(), shared_fd);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::string program = config.program, parent = std::to_string(getpid()), cpus;
    for (const int cpu : config.cpus)
        cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
    std::string user = config.user, symbols = config.own_symbols ? "own" : "any";
    char* arguments[] = {program.data(), parent.data(), cpus.data(), user.data(), symbols.data(), nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, program.c_str(), &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        problem = fmt::format("{} cannot be started: {}", program, std::strerror(error));
        return Status::unsupported;
    }
    host.reset(new KernelHost(pid, std::move(mine), std::move(mapping)));
    return Status::ok;
}

KernelHost::~KernelHost() {
    end();
}

bool KernelHost::answered() const {
    // The host counts an answer when it has sent it, so what was taken may be ahead.
    const auto& answers = reinterpret_cast<const Shared*>(shared_.data())->answers;
    return static_cast<std::int64_t>(answers.load(std::memory_order_acquire) - taken_) > 0;
}

Status KernelHost::send(const Request& request, std::span<const int> descriptors) {
    const std::vector<std::byte> record = encode(request);
    iovec part{const_cast<std::byte*>(record.data()), record.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(max_regions * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(record.size()) ? Status::ok : Status::peer_lost;
}

Status KernelHost::receive(Answer& answer) {
    std::byte record[max_record_bytes];
    ssize_t got;
    // The end of a host that had not read all of its records is reported once, ahead of its answers.
    bool reset = false;
    do {
        got = recv(socket_.get(), record, sizeof record, MSG_DONTWAIT);
    } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Status::retry;
    if (got <= 0 || !decode(std::span(record, static_cast<std::size_t>(got)), answer))
        return Status::peer_lost;
    ++taken_;
    return Status::ok;
}

void KernelHost::kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::string KernelHost::wait(int options) {
    int status = 0;
    pid_t ended;
    do {
        ended = waitpid(pid_, &status, options);
    } while (ended < 0 && errno == EINTR);
    if (ended == 0) return {};
    pid_ = -1;
    if (ended > 0 && WIFSIGNALED(status))
        return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (ended > 0 && WIFEXITED(status)) return fmt::format("it left with code {}", WEXITSTATUS(status));
    return "it ended";
}

std::string KernelHost::reap() {
    return pid_ > 0 ? wait(WNOHANG) : "it ended";
}

std::string KernelHost::end() {
    if (pid_ <= 0) return "it ended";
    kill();
    return wait(0);
}

}  // namespace offpath::kernel_host
