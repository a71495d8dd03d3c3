#include "target/host/output_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

namespace offpath::target {
namespace {

constexpr std::size_t longest_line = 16 << 10;  // a longer line is passed on in parts

}  // namespace

OutputLines::OutputLines(Take take) : take_(std::move(take)), stop_(eventfd(0, EFD_CLOEXEC)) {
    for (int i = 0; i < 2; ++i) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) continue;
        pipes_[i].descriptor = i + 1;
        pipes_[i].end = FileDescriptor(ends[0]);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        dup2(ends[1], i + 1);
        close(ends[1]);
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    thread_ = std::thread([this] { watch(); });
}

OutputLines::~OutputLines() {
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
    flush();
    for (Pipe& pipe : pipes_)
        if (!pipe.line.empty()) take_(pipe.descriptor, pipe.line);
}

bool OutputLines::drain(Pipe& pipe) {
    char text[4096];
    bool some = false;
    while (true) {
        const ssize_t got = read(pipe.end.get(), text, sizeof text);
        if (got <= 0) return some;
        some = true;
        pipe.line.append(text, static_cast<std::size_t>(got));
        const std::size_t whole = pipe.line.rfind('\n');
        if (whole == std::string::npos && pipe.line.size() < longest_line) continue;
        const std::size_t end = whole == std::string::npos ? pipe.line.size() : whole + 1;
        take_(pipe.descriptor, pipe.line.substr(0, end));
        pipe.line.erase(0, end);
    }
}

void OutputLines::flush() {
    std::fflush(nullptr);
    std::lock_guard lock(mutex_);
    for (Pipe& pipe : pipes_)
        if (pipe.end) drain(pipe);
}

void OutputLines::watch() {
    while (true) {
        pollfd ends[3] = {
            {pipes_[0].end.get(), POLLIN, 0}, {pipes_[1].end.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        if (poll(ends, 3, -1) < 0) continue;
        if (ends[2].revents != 0) return;
        std::lock_guard lock(mutex_);
        for (Pipe& pipe : pipes_)
            if (pipe.end) drain(pipe);
    }
}

}  // namespace offpath::target
