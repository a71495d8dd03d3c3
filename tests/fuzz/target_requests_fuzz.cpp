// What a target host reads from its program. The input is everything that the program sends. A request is
// either handled with payloads that have arrived, or refused with a reason, and reading ends.
#include "input_line.h"
#include "target/host/requests.h"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace offpath;
using namespace offpath::target;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz-requests: %s\n", what);
    std::abort();
}

class Handler final : public RequestHandler {
  public:
    explicit Handler(std::size_t input_bytes) : input_bytes_(input_bytes) {}

    void find_image(std::uint64_t, const FindImage&) override {}
    void load_image(std::uint64_t, const LoadImage&, std::span<const std::byte> image) override {
        count(image.size());
    }
    void load_library(std::uint64_t, const std::string& name) override { count(name.size()); }
    void find_symbols(std::uint64_t, const FindSymbols& find, std::span<const std::string> names) override {
        require(names.size() == find.count, "another number of names than was said");
        for (const std::string& name : names) {
            require(name.find('\0') == std::string::npos, "a name has an end inside");
            count(name.size());
        }
    }
    void allocate(std::uint64_t, const Allocate&) override {}
    void map_file(std::uint64_t, const MapFile&) override {}
    void part(std::uint64_t, const Part&) override {}
    void unify(std::uint64_t, std::span<const AddressRange> ranges) override { count(ranges.size_bytes()); }
    void fetched(std::uint64_t, std::span<const std::byte> bytes) override { count(bytes.size()); }
    // What fits into the memory goes there, the rest is queued. The sanitizer sees what is written beside it.
    std::span<std::byte> place(std::uint32_t stream, const Put&, std::uint64_t bytes) override {
        require(bytes > 0, "a put of nothing");
        if (stream % 2 != 0 || bytes > memory_.size()) return {};
        return std::span(memory_).last(bytes);
    }
    void queue(std::uint32_t, Work work) override {
        if (const auto* const put = std::get_if<PutWork>(&work)) {
            require(!put->data.empty() && put->data.size() <= data_piece, "the size of a piece");
            count(put->data.size());
        }
        if (const auto* const call = std::get_if<CallWork>(&work)) {
            require(call->arguments.size() <= max_arguments + 1, "too many arguments");
            count(call->arguments.size() * sizeof call->arguments[0]);
        }
    }
    void refuse(std::uint64_t, Status status, const std::string& why) override {
        require(status != Status::ok && !why.empty(), "refused without a reason");
    }

  private:
    void count(std::size_t bytes) {
        handled_ += bytes;
        require(handled_ <= input_bytes_, "payloads are longer than what came");
    }

    const std::size_t input_bytes_;
    std::size_t handled_ = 0;
    std::vector<std::byte> memory_ = std::vector<std::byte>(512);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    InputLine line({reinterpret_cast<const std::byte*>(data), size});
    Handler handler(size);
    Requests requests(line, handler);
    // Each call takes some bytes, though perhaps not the whole head of a request.
    std::size_t calls = size + 1;
    while (requests.next() != Requests::Next::broken && line.readable())
        require(calls-- > 0, "a request takes no bytes");
    while (requests.next() == Requests::Next::request)
        require(calls-- > 0, "more requests than came");
    return 0;
}
