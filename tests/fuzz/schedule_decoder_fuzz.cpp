// Decodes the input as a whole encoded schedule, and, because a fuzzer cannot guess a checksum, as the body
// of one. Whatever decodes must be valid, encode to the same bytes, and survive the next steps.
#include "schedule/goal.h"
#include "schedule/validate.h"
#include "schedule/wire.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace offpath;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz-schedule: %s\n", what);
    std::abort();
}

void check(std::span<const std::byte> bytes) {
    schedule::Schedule decoded;
    std::string problem;
    if (schedule::decode(bytes, decoded, problem) != Status::ok) {
        require(!problem.empty(), "refused without a reason");
        require(decoded == schedule::Schedule(), "refused, but the result was set");
        return;
    }
    require(schedule::validate(decoded, problem) == Status::ok, "an invalid schedule was decoded");
    const std::vector<std::byte> again = schedule::encode(decoded);
    require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
            "the encoding is not canonical");
    if (schedule::validate_team({&decoded, 1}, problem) == Status::ok)
        require(!schedule::to_goal({&decoded, 1}).empty(), "an empty export");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    check(bytes);
    check(schedule::seal(bytes));
    return 0;
}
