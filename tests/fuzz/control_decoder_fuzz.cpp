// Decodes the input as a socket message, as a TCP stream, as a command record, and as the contents of a
// client's ring. Whatever decodes must encode to the same bytes, and nothing may be read outside the input.
#include "control/commands.h"
#include "control/message_socket.h"
#include "control/messages.h"
#include "control/ring.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

using namespace offpath;
using namespace offpath::control;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz-control: %s\n", what);
    std::abort();
}

void as_message(std::span<const std::byte> bytes) {
    Message message;
    std::string problem;
    if (decode_message(bytes, message, problem) != Status::ok) {
        require(!problem.empty(), "a message was refused without a reason");
        return;
    }
    require(std::ranges::equal(encode_message(message), bytes), "a message has two forms");
}

void as_stream(std::span<const std::byte> bytes) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no socket pair");
    MessageSocket socket = MessageSocket::over_tcp(FileDescriptor(ends[0]));
    const FileDescriptor other(ends[1]);
    bytes = bytes.first(std::min(bytes.size(), std::size_t{16} << 10));
    require(write(other.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "write");
    Received received;
    std::size_t used = 0;
    Status status;
    while ((status = socket.receive_bytes(received)) == Status::ok) {
        used += received.bytes.size() + 4;
        require(used <= bytes.size(), "frames are longer than what came");
        as_message(received.bytes);
    }
    require(status == Status::retry || !received.problem.empty(), "a frame was refused without a reason");
}

void as_command(std::span<const std::byte> record) {
    Command command;
    std::string problem;
    if (decode_command(record, command, problem) != Status::ok) {
        require(!problem.empty(), "a command was refused without a reason");
        return;
    }
    require(record_bytes(command) == record.size(), "a command has another length than its record");
    std::vector<std::byte> again(record.size());
    encode_command(command, again);
    require(std::ranges::equal(again, record), "a command has two forms");
}

void as_ring(std::span<const std::byte> bytes) {
    constexpr std::size_t ring_bytes = 8 << 10;
    static const auto indices = std::make_unique<RingIndices>();
    // Of its own size, so that the sanitizer sees a read beyond its end.
    std::vector<std::byte> data(ring_bytes);
    std::copy_n(bytes.begin(), std::min(bytes.size(), ring_bytes), data.begin());
    indices->head = 0;
    indices->tail = (bytes.size() + cache_line - 1) / cache_line * cache_line;
    RingConsumer consumer(indices.get(), data);
    std::span<const std::byte> record;
    while (consumer.next(record) == RingConsumer::Next::record)
        as_command(record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    as_message(bytes);
    as_stream(bytes);
    as_command(bytes);
    as_ring(bytes);
    return 0;
}
