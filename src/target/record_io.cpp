#include "target/record_io.h"

#include "base/pause.h"
#include "target/silence.h"

#include <algorithm>
#include <cstring>

namespace offpath::target {
namespace {

constexpr int spins = 2000;

}  // namespace

void RecordReader::fill() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (buffer_.size() - end_ < buffer_.size() / 2) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, buffered());
        end_ -= begin_;
        begin_ = 0;
    }
    end_ += line_.read(std::span(buffer_).subspan(end_));
}

bool RecordReader::next(Head& head) {
    if (buffered() < sizeof head) fill();
    if (buffered() < sizeof head) return false;
    std::memcpy(&head, buffer_.data() + begin_, sizeof head);
    begin_ += sizeof head;
    return true;
}

bool RecordReader::take(std::span<std::byte> into) {
    int idle = 0;
    Silence silence;
    while (!into.empty()) {
        if (buffered() == 0 && into.size() < buffer_.size() / 2) fill();
        std::size_t got = std::min(into.size(), buffered());
        if (got > 0) {
            std::memcpy(into.data(), buffer_.data() + begin_, got);
            begin_ += got;
        } else {
            got = line_.read(into);
        }
        into = into.subspan(got);
        if (got > 0) {
            idle = 0;
            silence.end();
        } else if (line_.lost() && !line_.readable()) {
            return false;
        } else if (++idle < spins) {
            pause_cpu();
        } else {
            line_.leave();
            line_.sleep(record_nap_ns);
            line_.attend();
            if (limit_ns_ != 0 && silence.lasts_ns() > limit_ns_) return false;
        }
    }
    return true;
}

bool RecordReader::skip(std::uint64_t bytes) {
    std::byte room[4096];
    while (bytes > 0) {
        const std::size_t part = std::min<std::uint64_t>(bytes, sizeof room);
        if (!take(std::span(room, part))) return false;
        bytes -= part;
    }
    return true;
}

bool write_all(Line& line, std::span<const std::byte> data, const std::function<void()>& while_full) {
    while (!data.empty()) {
        const std::size_t written = line.write(data);
        data = data.subspan(written);
        if (written > 0) continue;
        if (line.lost()) return false;
        while_full();
    }
    return true;
}

}  // namespace offpath::target
