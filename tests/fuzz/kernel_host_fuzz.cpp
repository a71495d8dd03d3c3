// The records between a proxy and its kernel host, which runs the clients' code. Whatever decodes encodes to
// the same bytes, and nothing is read outside the input.
#include "input.h"
#include "kernel_host/records.h"

namespace {

template <typename Record>
void as(std::span<const std::byte> bytes) {
    using namespace offpath::kernel_host;
    Record record;
    if (!decode(bytes, record)) return;
    offpath::fuzz::require(std::ranges::equal(encode(record), bytes), "a record has two forms");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    offpath::fuzz::Input input(data, size);
    const std::vector<std::byte> bytes = input.bytes(size);
    as<offpath::kernel_host::Request>(bytes);
    as<offpath::kernel_host::Answer>(bytes);
    return 0;
}
