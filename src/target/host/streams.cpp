#include "target/host/streams.h"

#include <utility>

namespace offpath::target {

bool Streams::add(std::uint32_t number, Work work) {
    std::lock_guard lock(mutex_);
    auto& stream = streams_[number];
    if (stream == nullptr) stream = std::make_shared<Stream>();
    stream->queue_.push_back(std::move(work));
    if (std::exchange(stream->busy_, true)) return false;
    ready_.push_back(stream);
    return true;
}

bool Streams::idle(std::uint32_t number) {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(number);
    return found == streams_.end() || !found->second->busy_;
}

std::shared_ptr<Stream> Streams::take() {
    std::lock_guard lock(mutex_);
    if (ready_.empty()) return nullptr;
    auto stream = std::move(ready_.front());
    ready_.pop_front();
    return stream;
}

std::size_t Streams::ready() {
    std::lock_guard lock(mutex_);
    return ready_.size();
}

bool Streams::next(Stream& stream, Work& work) {
    std::lock_guard lock(mutex_);
    if (stream.queue_.empty()) {
        stream.busy_ = false;
        return false;
    }
    work = std::move(stream.queue_.front());
    stream.queue_.pop_front();
    return true;
}

}  // namespace offpath::target
