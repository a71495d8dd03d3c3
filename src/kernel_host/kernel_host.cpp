#include "kernel_host/kernel_host.h"

#include "base/passed_descriptors.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (status != Status::ok) {
        problem = "no memory for a kernel host";
        return status;
    }
    std::array<FileDescriptor, 2> output, its_output;
    for (std::size_t i = 0; i < output.size(); ++i) {
        int pipe_ends[2];
        if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
            problem = fmt::format("no pipe for a kernel host: {}", std::strerror(errno));
            return Status::system;
        }
        output[i] = FileDescriptor(pipe_ends[0]);
        its_output[i] = FileDescriptor(pipe_ends[1]);
        fcntl(output[i].get(), F_SETFL, O_NONBLOCK);
    }
    pid_t pid = -1;
    const int descriptors[] = {its.get(), shared.get(), its_output[0].get(), its_output[1].get()};
    status = spawn_host(config, {config.own_symbols ? "own" : "any"}, descriptors, pid, problem);
    if (status != Status::ok) return status;
    host.reset(new KernelHost(pid, std::move(mine), std::move(mapping), std::move(output)));
    return Status::ok;
}

KernelHost::~KernelHost() {
    end();
}

bool KernelHost::answered() const {
    // The host counts an answer after it has sent it, so this side may already have taken more than were
    // counted.
    const auto& answers = reinterpret_cast<const Shared*>(shared_.data())->answers;
    return static_cast<std::int64_t>(answers.load(std::memory_order_acquire) - taken_) > 0;
}

Status KernelHost::send(const Request& request, std::span<const int> descriptors) {
    const std::vector<std::byte> record = encode(request);
    iovec part{const_cast<std::byte*>(record.data()), record.size()};
    DescriptorRoom<max_regions> room;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    pass_descriptors(descriptors, message, room);
    ssize_t sent;
    do {
        sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(record.size()) ? Status::ok : Status::peer_lost;
}

Status KernelHost::receive(Answer& answer) {
    std::byte record[max_record_bytes];
    ssize_t got;
    // If the host ended without reading all of its records, the socket reports that once, before its answers.
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
    if (pid_ > 0) kill_host(pid_);
}

void KernelHost::stop() {
    (void)has_stopped();
    if (pid_ > 0) ::kill(pid_, SIGUSR1);
}

bool KernelHost::has_stopped() {
    const auto& stops = reinterpret_cast<const Shared*>(shared_.data())->stops;
    const std::uint32_t now = stops.load(std::memory_order_acquire);
    return std::exchange(seen_stops_, now) != now;
}

void KernelHost::go_on() const {
    if (pid_ > 0) ::kill(pid_, SIGUSR2);
}

std::string KernelHost::wait(int options) {
    int status = 0;
    if (!reap_host(pid_, options, status)) return {};
    pid_ = -1;
    if (WIFSIGNALED(status))
        return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("it left with code {}", WEXITSTATUS(status));
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
