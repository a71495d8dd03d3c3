#include "client/device_line.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "control/socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace offpath::client {
namespace {

// A daemon only answers questions, so more than a few messages at once mean that it is faulty.
constexpr std::size_t max_messages = 64;

}  // namespace

DeviceLine::DeviceLine(control::MessageSocket socket) : socket_(std::move(socket)) {
    if (socket_.remote()) start();
}

void DeviceLine::start() {
    stop_event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_event_) throw std::system_error(errno, std::generic_category(), "eventfd");
    thread_ = start_own_thread([this] { run(); });
    threaded_ = true;
}

void DeviceLine::take_texts(const std::string& device) {
    auto texts = std::make_unique<DeviceTexts>(
        device, [this](std::uint64_t count) { (void)send(control::KernelTextsTaken{count}); });
    {
        std::lock_guard lock(mutex_);
        texts_ = std::move(texts);
    }
    if (!threaded_) start();
}

DeviceTexts* DeviceLine::texts() const {
    std::lock_guard lock(mutex_);
    return texts_.get();
}

DeviceLine::~DeviceLine() {
    if (threaded_) {
        stop_ = true;
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = write(stop_event_.get(), &one, sizeof one);
        thread_.join();
    }
    texts_.reset();  // its thread sends
}

Status DeviceLine::send(const control::Message& message, std::span<const int> descriptors) {
    if (!threaded_) return socket_.send(message, descriptors);
    std::lock_guard lock(mutex_);
    return closed_ ? Status::peer_lost : socket_.send(message, descriptors);
}

Status DeviceLine::receive(int timeout_ms, control::Message& message, std::string& problem) {
    if (!threaded_) {
        std::vector<FileDescriptor> descriptors;
        return socket_.receive(timeout_ms, message, descriptors, problem);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [this] { return !messages_.empty() || closed_; });
    if (!messages_.empty()) {
        message = std::move(messages_.front());
        messages_.pop_front();
        return Status::ok;
    }
    problem = closed_ ? why_ : "no answer yet";
    return closed_ ? Status::peer_lost : Status::unavailable;
}

bool DeviceLine::closed() const {
    return threaded_ ? closed_.load(std::memory_order_acquire) : socket_.peer_closed();
}

std::uint64_t DeviceLine::silent_ns() const {
    if (!threaded_ || !socket_.remote()) return 0;
    const std::lock_guard lock(mutex_);
    return socket_.silent_ns(now_ns());
}

FileDescriptor DeviceLine::process() const {
    errno = 0;
    control::Credentials daemon;
    if (control::peer_credentials(socket_.fd(), daemon) != Status::ok || daemon.pid <= 0) return {};
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, daemon.pid, 0)));
}

bool DeviceLine::process_ended(int timeout_ms) const {
    const FileDescriptor process = this->process();
    if (!process) return errno == ESRCH;
    pollfd entry{process.get(), POLLIN, 0};
    return poll(&entry, 1, timeout_ms) == 1;
}

bool DeviceLine::wait_closed(int timeout_ms) {
    if (!threaded_) {
        pollfd entry{socket_.fd(), POLLRDHUP, 0};
        poll(&entry, 1, timeout_ms);
        return socket_.peer_closed();
    }
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return closed_.load(); });
}

std::string DeviceLine::why() const {
    std::lock_guard lock(mutex_);
    return why_;
}

void DeviceLine::run() {
    pthread_setname_np(pthread_self(), "offpath-line");
    while (!stop_) {
        short wanted = POLLIN;
        {
            std::lock_guard lock(mutex_);
            if (!take_messages()) return;
            if (socket_.tend(now_ns()) != Status::ok) {
                close_with(
                    fmt::format("nothing was heard of it for {} s", control::silence_ns / 1'000'000'000));
                return;
            }
            if (socket_.unsent()) wanted |= POLLOUT;
        }
        pollfd entries[] = {{socket_.fd(), wanted, 0}, {stop_event_.get(), POLLIN, 0}};
        poll(entries, 2, socket_.remote() ? static_cast<int>(control::tend_interval_ns / 1'000'000) : -1);
    }
}

bool DeviceLine::take_messages() {
    control::Received received;
    while (true) {
        const Status status = socket_.receive_bytes(received);
        if (status == Status::retry) return true;
        control::Message message;
        std::string problem;
        if (status == Status::peer_lost) {
            close_with("it died");
        } else if (status != Status::ok) {
            close_with(received.problem.empty() ? to_string(status) : received.problem);
        } else if (control::decode_message(received.bytes, message, problem) != Status::ok) {
            close_with(problem);
        } else if (auto* text = std::get_if<control::KernelText>(&message); text != nullptr && texts_) {
            if (texts_->take(std::move(*text))) continue;
            close_with("it sends more texts of kernels than are taken");
        } else if (messages_.size() >= max_messages) {
            close_with("it sends messages that nobody has asked for");
        } else {
            messages_.push_back(std::move(message));
            changed_.notify_all();
            continue;
        }
        return false;
    }
}

void DeviceLine::close_with(std::string why) {
    why_ = std::move(why);
    closed_.store(true, std::memory_order_release);
    changed_.notify_all();
}

}  // namespace offpath::client
