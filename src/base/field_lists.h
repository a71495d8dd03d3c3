// Derives the size, encoder and decoder of a record from one list of its fields. Records are commands
// (control/commands.h), messages (control/messages.h), the items of a link (link/wire.h) and what a proxy and
// a kernel host exchange (kernel_host/records.h). A record lists its fields once:
//     static void fields(auto& self, auto&& each) { each(self.team, self.rank); each.list(self.part, limit);
//     }
// Numbers, enumerations, flags and structs are copied as they are in memory. Byte strings, texts and arrays,
// the lists, follow their length, a u32; the limit is the most bytes that a reader accepts. A text for people
// is a list, too, but `each.text` cuts it to its limit when it is written. A reader checks that flags are 0
// or 1 and that a status is known. Values of enumerations, and all else, are for the record to check, in
// `problem() const`. Pure.
#pragma once

#include "base/field_codec.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace offpath {

// An array of T inside a record; it need not be aligned.
template <typename T>
class Packed {
  public:
    Packed() = default;
    explicit Packed(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::size_t size() const { return bytes_.size() / sizeof(T); }
    T operator[](std::size_t i) const {
        T value;
        std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
        return value;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};
template <typename T>
Packed<T> pack(std::span<const T> values) {
    return Packed<T>(std::as_bytes(values));
}

class FieldBytes {
  public:
    template <typename... T>
    constexpr void operator()(const T&...) {
        static_assert((std::is_trivially_copyable_v<T> && ...));
        bytes_ += (sizeof(T) + ...);
    }
    void list(std::span<const std::byte> blob, std::size_t /*limit*/) {
        bytes_ += sizeof(std::uint32_t) + blob.size();
    }
    template <typename T>
    void list(const Packed<T>& array, std::size_t limit) {
        list(array.bytes(), limit);
    }
    constexpr std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_ = 0;
};

class FieldsOut {
  public:
    explicit FieldsOut(FieldWriter& out) : out_(out) {}
    template <typename... T>
    void operator()(const T&... values) {
        static_assert((std::is_trivially_copyable_v<T> && ...));
        (out_.value(values), ...);
    }
    void list(std::span<const std::byte> blob, std::size_t /*limit*/) { out_.blob(blob); }
    void list(const std::string& text, std::size_t /*limit*/) { out_.text(text); }
    template <typename T>
    void list(const std::vector<T>& items, std::size_t /*limit*/) {
        static_assert(std::is_trivially_copyable_v<T>);
        out_.blob(std::as_bytes(std::span(items)));
    }
    template <typename T>
    void list(const Packed<T>& array, std::size_t /*limit*/) {
        out_.blob(array.bytes());
    }
    void text(const std::string& text, std::size_t limit) {
        out_.blob(std::as_bytes(std::span(text.data(), std::min(text.size(), limit))));
    }

  private:
    FieldWriter& out_;
};

class FieldsIn {
  public:
    explicit FieldsIn(FieldReader& in) : in_(in) {}
    template <typename... T>
    void operator()(T&... values) {
        (read(values), ...);
    }
    void list(std::span<const std::byte>& blob, std::size_t limit) { blob = in_.blob(limit); }
    void list(std::string& text, std::size_t limit) { text = in_.text(limit); }
    template <typename T>
    void list(Packed<T>& array, std::size_t limit) {
        const auto bytes = in_.blob(limit);
        check_whole<T>(bytes);
        array = Packed<T>(bytes);
    }
    template <typename T>
    void list(std::vector<T>& items, std::size_t limit) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto bytes = in_.blob(limit);
        check_whole<T>(bytes);
        items.resize(bytes.size() / sizeof(T));
        if (!items.empty()) std::memcpy(items.data(), bytes.data(), items.size() * sizeof(T));
    }
    void text(std::string& text, std::size_t limit) { list(text, limit); }

    // What is wrong with the form of the fields so far; null: nothing.
    const char* wrong() const { return wrong_; }

  protected:
    const FieldReader& reader() const { return in_; }

  private:
    template <typename T>
    void check_whole(std::span<const std::byte> bytes) {
        if (bytes.size() % sizeof(T) != 0) wrong_ = "a list that ends within an element";
    }
    template <typename T>
    void read(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        if constexpr (std::is_same_v<T, bool>) {
            const auto flag = in_.value<std::uint8_t>();
            if (flag > 1) wrong_ = "a flag that is neither 0 nor 1";
            value = flag == 1;
        } else if constexpr (std::is_same_v<T, Status>) {
            // An unknown status reads as this error.
            value = Status::protocol;
            if (!status_of(in_.value<std::int32_t>(), value)) wrong_ = "an unknown status";
        } else {
            value = in_.value<T>();
        }
    }

    FieldReader& in_;
    const char* wrong_ = nullptr;
};

template <typename R>
constexpr std::size_t body_bytes(const R& record) {
    FieldBytes count;
    R::fields(record, count);
    return count.bytes();
}

template <typename R>
void write_body(FieldWriter& out, const R& record) {
    R::fields(record, FieldsOut(out));
}

// Null: the body is valid. Otherwise the text says what is wrong.
template <typename R>
const char* read_body(FieldReader& in, R& record) {
    FieldsIn fields(in);
    R::fields(record, fields);
    if (fields.wrong() != nullptr) return fields.wrong();
    if constexpr (requires { record.problem(); })
        if (in.ok()) return record.problem();
    return nullptr;
}

}  // namespace offpath
