// Derives the size, encoder and decoder of a command from one list of its fields (commands.h). A command
// lists its fields once:
//     static void fields(auto& self, auto&& each) { each(self.team, self.rank); each.list(self.part, limit);
//     }
// Numbers and structs are copied as they are in memory. Byte strings and arrays, the lists, follow their
// length, a u32; the limit is the most bytes that a reader accepts. A command may check decoded values in
// `const char* problem() const`, which returns null if they are valid. Pure.
#pragma once

#include "control/command_fields.h"

#include <type_traits>

namespace offpath::control {

class FieldBytes {
  public:
    template <typename... T>
    void operator()(const T&...) {
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
    std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_ = 0;
};

class FieldsOut {
  public:
    explicit FieldsOut(FieldWriter& out) : out_(out) {}
    template <typename... T>
    void operator()(const T&... values) {
        (out_.value(values), ...);
    }
    void list(std::span<const std::byte> blob, std::size_t /*limit*/) { out_.blob(blob); }
    template <typename T>
    void list(const Packed<T>& array, std::size_t /*limit*/) {
        out_.blob(array.bytes());
    }

  private:
    FieldWriter& out_;
};

class FieldsIn {
  public:
    explicit FieldsIn(FieldReader& in) : in_(in) {}
    template <typename... T>
    void operator()(T&... values) {
        ((values = in_.value<T>()), ...);
    }
    void list(std::span<const std::byte>& blob, std::size_t limit) { blob = in_.blob(limit); }
    template <typename T>
    void list(Packed<T>& array, std::size_t limit) {
        const auto bytes = in_.blob(limit);
        whole_ = whole_ && bytes.size() % sizeof(T) == 0;
        array = Packed<T>(bytes);
    }
    // Whether every array consists of whole elements.
    bool whole() const { return whole_; }

  private:
    FieldReader& in_;
    bool whole_ = true;
};

template <typename C>
std::size_t body_bytes(const C& command) {
    FieldBytes count;
    C::fields(command, count);
    return count.bytes();
}

template <typename C>
void write_body(FieldWriter& out, const C& command) {
    C::fields(command, FieldsOut(out));
}

// Null: the body is valid. Otherwise the text says what is wrong.
template <typename C>
const char* read_body(FieldReader& in, C& command) {
    FieldsIn fields(in);
    C::fields(command, fields);
    if (!fields.whole()) return "a list that ends within an element";
    if constexpr (requires { command.problem(); })
        if (in.ok()) return command.problem();
    return nullptr;
}

inline bool part_fits(std::uint64_t first, std::uint64_t count, std::uint64_t total) {
    return first <= total && count <= total - first;
}

}  // namespace offpath::control
