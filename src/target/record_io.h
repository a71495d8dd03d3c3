// Reads and writes whole records on a line. Ownership: both borrow the line. Threads: as Line says; each
// object is used by one thread at a time.
#pragma once

#include "target/line.h"
#include "target/records.h"

#include <functional>
#include <vector>

namespace offpath::target {

class RecordReader {
  public:
    explicit RecordReader(Line& line) : line_(line), buffer_(buffer_bytes) {}

    // Takes the head of the next record. False: it has not arrived. The rest of the record must be taken
    // next.
    bool next(Head& head);
    // Takes bytes of the record, and waits until they have arrived. False: the line is lost, or nothing has
    // come for the time that wait_at_most() has set.
    bool take(std::span<std::byte> into);
    bool skip(std::uint64_t bytes);
    // 0: take() waits for ever.
    void wait_at_most(std::uint64_t limit_ns) { limit_ns_ = limit_ns; }
    template <typename T>
    bool body(T& value) {
        return take(std::as_writable_bytes(std::span(&value, 1)));
    }

  private:
    static constexpr std::size_t buffer_bytes = 64 << 10;
    std::size_t buffered() const { return end_ - begin_; }
    void fill();

    Line& line_;
    std::vector<std::byte> buffer_;
    std::size_t begin_ = 0, end_ = 0;
    std::uint64_t limit_ns_ = 0;
};

// Writes all of `data`. `while_full` is called when there is no room; it waits, or makes room by reading.
// False: the line is lost.
bool write_all(Line& line, std::span<const std::byte> data, const std::function<void()>& while_full);

// The size of a kind's body in a record.
template <typename Body>
constexpr std::uint64_t body_bytes() {
    return std::is_empty_v<Body> ? 0 : sizeof(Body);
}

// Appends head and body, and the payload if it is given, to `out`.
template <typename Body>
void append_record(std::vector<std::byte>& out, std::uint64_t number, std::uint32_t stream, const Body& body,
                   std::span<const std::byte> payload = {}, std::uint64_t more_payload = 0) {
    Head head;
    head.bytes = body_bytes<Body>() + payload.size() + more_payload;
    head.number = number;
    head.stream = stream;
    head.kind = Body::kind;
    const auto append = [&](std::span<const std::byte> part) {
        out.insert(out.end(), part.begin(), part.end());
    };
    append(bytes_of(head));
    if constexpr (!std::is_empty_v<Body>) append(bytes_of(body));
    append(payload);
}

}  // namespace offpath::target
