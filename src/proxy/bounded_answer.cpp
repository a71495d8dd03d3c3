#include "proxy/bounded_answer.h"

#include "base/file_descriptor.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace offpath::proxy {
namespace {

using Steady = std::chrono::steady_clock;

// The length goes first, so that a part is no answer.
void send_answer(int pipe, const std::string& answer) {
    const std::string text = std::to_string(answer.size()) + "\n" + answer;
    for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t now = write(pipe, text.data() + sent, text.size() - sent);
        if (now <= 0 && errno != EINTR) return;
        if (now > 0) sent += static_cast<std::size_t>(now);
    }
}

std::string receive_answer(int pipe, Steady::time_point deadline) {
    std::string text;
    std::array<char, 4096> part;
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
        pollfd ready{pipe, POLLIN, 0};
        if (left <= 0) return text;
        if (poll(&ready, 1, static_cast<int>(left)) <= 0) continue;
        const ssize_t got = read(pipe, part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(part.data(), static_cast<std::size_t>(got));
    }
}

}  // namespace

std::optional<std::string> answer_within(std::chrono::milliseconds limit,
                                         const std::function<std::string()>& question) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    const FileDescriptor ours(ends[0]);
    FileDescriptor theirs(ends[1]);
    const Steady::time_point deadline = Steady::now() + limit;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        send_answer(theirs.get(), question());
        _exit(0);
    }
    theirs = FileDescriptor();
    if (child < 0) return std::nullopt;
    const std::string text = receive_answer(ours.get(), deadline);
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    const std::size_t line = text.find('\n');
    if (line == std::string::npos || std::to_string(text.size() - line - 1) != text.substr(0, line))
        return std::nullopt;
    return text.substr(line + 1);
}

}  // namespace offpath::proxy
