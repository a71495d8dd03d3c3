// What a program receives from its target host, which runs the program's own, perhaps faulty, code. The input
// is everything that the host sends. Data may go into the memory that a get has named and nowhere else, and
// every wait ends.
#include "input_line.h"
#include "target/program/answers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace offpath;
using namespace offpath::target;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz-target: %s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Data records name addresses, so the inputs that the fuzzer learns must mean the same in each run.
    constexpr std::size_t around = 64, middle = 256;
    static std::byte memory[around + middle + around];
    std::fill(std::begin(memory), std::end(memory), std::byte{0x5a});
    // An address is given relative to the memory: the first eight bytes of a Data record's body.
    std::vector<std::byte> bytes(size);
    if (size > 0) std::memcpy(bytes.data(), data, size);
    for (std::size_t at = 0; at + sizeof(Head) + sizeof(Data) <= bytes.size();) {
        Head head;
        std::memcpy(&head, bytes.data() + at, sizeof head);
        if (head.kind == Kind::data) {
            Data body;
            std::memcpy(&body, bytes.data() + at + sizeof head, sizeof body);
            body.destination += reinterpret_cast<std::uint64_t>(memory);
            std::memcpy(bytes.data() + at + sizeof head, &body, sizeof body);
        }
        if (head.bytes > bytes.size()) break;
        at += sizeof head + head.bytes;
    }
    InputLine line(bytes);
    Answers answers(
        line,
        [](int descriptor, const std::string&) { require(descriptor == 1 || descriptor == 2, "output"); }, 0,
        0, false);
    const std::uint64_t first = answers.expect(), get = answers.expect_data(memory + around, middle);
    const std::uint64_t second = answers.expect();
    Answer answer;
    (void)answers.test(second, answer);
    (void)answers.wait(first);
    answers.make_room();
    answers.forget_data(get);
    // The rest of the input may hold answers to these waits too, one in each record at most.
    std::size_t waits = bytes.size() / sizeof(Head) + 1;
    while (answers.wait(answers.expect()).status != Status::peer_lost)
        require(waits-- > 0, "a line that has ended is not lost");
    for (std::size_t i = 0; i < around; ++i)
        require(memory[i] == std::byte{0x5a} && memory[around + middle + i] == std::byte{0x5a},
                "bytes beside the memory of the get were written");
    require(!answers.why().empty(), "no reason");
    return 0;
}
