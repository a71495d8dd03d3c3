// The input is taken as a socket message, as a command record, and as what a client left in its ring.
// Whatever decodes has to encode to the same bytes, and nothing is read outside its place.
#include "control/commands.h"
#include "control/messages.h"
#include "control/ring.h"

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
    as_command(bytes);
    as_ring(bytes);
    return 0;
}
