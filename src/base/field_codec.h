// Reads and writes little-endian fields in byte strings: the encoding of messages and commands. The reader
// trusts nothing: after the first field that does not fit, every field reads as zero and ok() is false.
#pragma once

#include "base/status.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace offpath {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

// Writes into a buffer that the caller has made large enough. A field that does not fit is dropped, and ok()
// becomes false.
class FieldWriter {
  public:
    explicit FieldWriter(std::span<std::byte> room) : room_(room) {}

    template <typename T>
    void value(T v) {
        bytes(std::as_bytes(std::span(&v, 1)));
    }
    void bytes(std::span<const std::byte> data) {
        if (data.size() > room_.size() - used_) {
            ok_ = false;
            return;
        }
        if (!data.empty()) std::memcpy(room_.data() + used_, data.data(), data.size());
        used_ += data.size();
    }
    // Writes a u32 length, then the bytes.
    void blob(std::span<const std::byte> data) {
        value(static_cast<std::uint32_t>(data.size()));
        bytes(data);
    }
    void text(const std::string& s) { blob(std::as_bytes(std::span(s.data(), s.size()))); }

    std::size_t used() const { return used_; }
    bool ok() const { return ok_; }

  private:
    std::span<std::byte> room_;
    std::size_t used_ = 0;
    bool ok_ = true;
};

class FieldReader {
  public:
    explicit FieldReader(std::span<const std::byte> data) : data_(data) {}

    template <typename T>
    T value() {
        T v{};
        const auto field = take(sizeof(T));
        if (!field.empty()) std::memcpy(&v, field.data(), sizeof(T));
        return v;
    }
    std::span<const std::byte> take(std::size_t bytes) {
        if (!ok_ || bytes > data_.size() - used_) {
            ok_ = false;
            return {};
        }
        used_ += bytes;
        return data_.subspan(used_ - bytes, bytes);
    }
    std::span<const std::byte> blob(std::size_t limit) {
        const auto length = value<std::uint32_t>();
        if (length > limit) ok_ = false;
        return take(length);
    }
    std::string text(std::size_t limit) {
        const auto data = blob(limit);
        return {reinterpret_cast<const char*>(data.data()), data.size()};
    }

    bool ok() const { return ok_; }
    // True when every field was there and nothing follows the last one.
    bool complete() const { return ok_ && used_ == data_.size(); }

  private:
    std::span<const std::byte> data_;
    std::size_t used_ = 0;
    bool ok_ = true;
};

// Decodes a final status from the wire. Only 0 and the errors that both sides know are accepted.
inline bool status_of(std::int32_t value, Status& status) {
    if (value > 0 || value < OFFPATH_ERR_SYSTEM) return false;
    status = static_cast<Status>(value);
    return true;
}

}  // namespace offpath
