#include "client/device_texts.h"

#include "base/log.h"
#include "base/own_thread.h"

#include <pthread.h>

#include <cstdio>

namespace offpath::client {

DeviceTexts::DeviceTexts(std::string device, Taken taken)
    : device_(std::move(device)), taken_(std::move(taken)) {
    printer_ = start_own_thread([this] { run(); });
}

DeviceTexts::~DeviceTexts() {
    {
        std::lock_guard lock(texts_mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    printer_.join();
}

bool DeviceTexts::take(control::KernelText text) {
    {
        std::lock_guard lock(texts_mutex_);
        if (waiting_.size() >= control::max_kernel_texts) return false;
        if (text.kind == control::KernelTextKind::failure) last_failure_ = text.text;
        waiting_.push_back(std::move(text));
    }
    changed_.notify_all();
    return true;
}

void DeviceTexts::wait_printed() {
    std::unique_lock lock(texts_mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() && !printing_; });
}

std::string DeviceTexts::last_failure() const {
    std::lock_guard lock(texts_mutex_);
    return last_failure_;
}

void DeviceTexts::run() {
    pthread_setname_np(pthread_self(), "offpath-texts");
    std::uint64_t count = 0;
    std::unique_lock lock(texts_mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const control::KernelText text = std::move(waiting_.front());
        waiting_.pop_front();
        printing_ = true;
        lock.unlock();
        print(text);
        taken_(++count);
        lock.lock();
        printing_ = false;
        changed_.notify_all();
    }
}

void DeviceTexts::print(const control::KernelText& text) {
    if (text.kind == control::KernelTextKind::failure) {
        const std::string whole = fmt::format("device {}: {}", device_, text.text);
        if (whole != last_logged_) log::error(Code::kernel, "{}", whole);
        last_logged_ = whole;
        return;
    }
    std::string out;
    for (std::size_t at = 0; at < text.text.size();) {
        const std::size_t end = std::min(text.text.find('\n', at), text.text.size() - 1) + 1;
        out += fmt::format("[{}] ", device_);
        out.append(text.text, at, end - at);
        at = end;
    }
    if (!out.ends_with('\n')) out += '\n';
    std::FILE* const file = text.kind == control::KernelTextKind::error_output ? stderr : stdout;
    std::fwrite(out.data(), 1, out.size(), file);
    std::fflush(file);
}

}  // namespace offpath::client
