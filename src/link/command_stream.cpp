#include "link/command_stream.h"

#include <cstring>
#include <utility>

namespace offpath::link {

CommandStream::Batch CommandStream::copy(std::span<const std::byte> bytes) {
    Batch batch;
    if (!spare_.empty()) {
        batch = std::move(spare_.back());
        spare_.pop_back();
    }
    batch.assign(bytes.begin(), bytes.end());
    return batch;
}

bool CommandStream::accept(std::uint64_t number, std::span<const std::byte> batch, const char*& why) {
    if (number < next_number_ || early_.contains(number)) {
        why = "a batch of commands came twice";
        return false;
    }
    arrived_ += batch.size();
    if (arrived_ - taken_ > room_) {
        why = "more commands than there was room for";
        return false;
    }
    if (number != next_number_) {
        early_.emplace(number, copy(batch));
        return true;
    }
    ready_.push_back(copy(batch));
    ++next_number_;
    for (auto at = early_.begin(); at != early_.end() && at->first == next_number_; ++next_number_) {
        ready_.push_back(std::move(at->second));
        at = early_.erase(at);
    }
    return true;
}

control::NextRecord CommandStream::next(std::span<const std::byte>& record) {
    if (ready_.empty()) return control::NextRecord::none;
    const std::span<const std::byte> rest = std::span(ready_.front()).subspan(place_);
    std::uint32_t bytes = 0;
    if (rest.size() < control::record_header_bytes) return control::NextRecord::broken;
    std::memcpy(&bytes, rest.data(), sizeof bytes);
    if (bytes < control::record_header_bytes || bytes > rest.size()) return control::NextRecord::broken;
    record = rest.first(bytes);
    taken_ += bytes;
    place_ += bytes;
    if (bytes == rest.size()) {
        // The record must stay valid until the next call, so its batch is kept. Moving a vector moves no
        // bytes.
        if (spare_.size() < max_spare_batches) spare_.push_back(std::move(current_));
        current_ = std::move(ready_.front());
        ready_.pop_front();
        place_ = 0;
    }
    return control::NextRecord::record;
}

}  // namespace offpath::link
