#include "proxy/kernel_output.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace offpath::proxy {
namespace {

constexpr std::size_t read_bytes = control::max_kernel_text_bytes;
// The most that is read of a process that has ended. Processes that it has started may still print.
constexpr std::size_t last_bytes = 64 << 10;

}  // namespace

void KernelOutput::open(std::array<FileDescriptor, 2> pipes) {
    pipes_[0] = {control::KernelTextKind::output, std::move(pipes[0]), {}, 0};
    pipes_[1] = {control::KernelTextKind::error_output, std::move(pipes[1]), {}, 0};
    readable_ = paused_ = false;
    watch(true);
}

bool KernelOutput::owns(int fd) const {
    return std::any_of(pipes_.begin(), pipes_.end(), [fd](const Pipe& pipe) { return pipe.end.get() == fd; });
}

void KernelOutput::watch(bool on) {
    for (const Pipe& pipe : pipes_) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = pipe.end.get();
        if (pipe.end) epoll_ctl(epoll_, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, pipe.end.get(), &event);
    }
}

bool KernelOutput::progress() {
    if (!texts_.room()) {
        if (readable_ && !paused_) watch(false);
        paused_ |= readable_;
        readable_ = false;
        return false;
    }
    if (paused_) {
        watch(true);
        paused_ = false;
        readable_ = true;
    }
    if (!readable_) return false;
    bool some = false;
    for (Pipe& pipe : pipes_)
        if (pipe.end && texts_.room()) some |= read(pipe);
    readable_ = some;
    return some;
}

bool KernelOutput::read(Pipe& pipe) {
    char text[read_bytes];
    ssize_t got;
    do {
        got = ::read(pipe.end.get(), text, sizeof text);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        pipe.owed = 0;
        return false;
    }
    if (got <= 0) {  // the kernels have closed it
        epoll_ctl(epoll_, EPOLL_CTL_DEL, pipe.end.get(), nullptr);
        pipe.end.reset();
        pipe.owed = 0;
        return false;
    }
    pipe.owed -= std::min(pipe.owed, static_cast<std::size_t>(got));
    pipe.line.append(text, static_cast<std::size_t>(got));
    const std::size_t last = pipe.line.rfind('\n');
    std::size_t whole = last == std::string::npos ? 0 : last + 1;
    if (pipe.line.size() - whole >= read_bytes) whole = pipe.line.size();
    if (whole == 0) return true;
    texts_.output(pipe.kind, std::string_view(pipe.line).substr(0, whole));
    pipe.line.erase(0, whole);
    return true;
}

void KernelOutput::pass_rest() {
    for (Pipe& pipe : pipes_) {
        texts_.output(pipe.kind, pipe.line);
        pipe.line.clear();
    }
}

void KernelOutput::finish() {
    for (Pipe& pipe : pipes_)
        for (std::size_t bytes = 0; pipe.end && bytes < last_bytes && read(pipe); bytes += read_bytes) {
        }
    pass_rest();
    if (!paused_) watch(false);
    for (Pipe& pipe : pipes_)
        pipe = {};
    readable_ = paused_ = false;
}

void KernelOutput::owe() {
    for (Pipe& pipe : pipes_) {
        int bytes = 0;
        if (pipe.end && ioctl(pipe.end.get(), FIONREAD, &bytes) == 0 && bytes > 0) {
            pipe.owed = static_cast<std::size_t>(bytes);
            readable_ |= !paused_;
        }
    }
}

bool KernelOutput::owes() const {
    return std::any_of(pipes_.begin(), pipes_.end(), [](const Pipe& pipe) { return pipe.owed > 0; });
}

}  // namespace offpath::proxy
