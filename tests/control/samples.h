// One of every message and command, with every field set: for round trips, truncation and the fuzzer's seeds.
#pragma once

#include "control/commands.h"
#include "control/messages.h"

#include <vector>

namespace offpath::control::samples {

template <std::size_t size>
std::array<std::byte, size> filled(int first) {
    std::array<std::byte, size> bytes;
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(first + static_cast<int>(i));
    return bytes;
}

inline std::vector<Message> messages() {
    Hello hello{1, 2, 3, 4, 5, BackEndRequest::staged, 6, 7, filled<32>(0x50)};
    Welcome welcome{8,
                    9,
                    3,
                    2,
                    10,
                    true,
                    "node1",
                    "UCX tcp",
                    {std::byte{1}, std::byte{2}, std::byte{3}},
                    {std::byte{9}},
                    filled<32>(0x80)};
    return {hello,
            welcome,
            Refusal{Status::version, "no"},
            RegisterRegion{1, 0x7f0000000000, 1 << 20},
            RegionReply{1, Status::memory, 2, 2},
            RevokeRegion{1},
            Goodbye{},
            Challenge{filled<16>(0x10)},
            RemoteHello{hello, 13, filled<16>(0x20), {std::byte{4}, std::byte{5}}, filled<32>(0x40)},
            RemoteWelcome{welcome, 11, true, {std::byte{6}}, filled<32>(0x60)},
            KeepAlive{},
            RegisterExported{2, 0x7f0000000000, 4096, {std::byte{7}, std::byte{8}}},
            LoadKernel{3, "/lib/k.so", "f", 2, 5},
            KernelReply{3, Status::invalid, "no"},
            DirectCall{{std::byte{9}, std::byte{10}}},
            DirectProof{filled<16>(0x10), filled<16>(0x20), 1, 2, 3, 4, filled<32>(0xa0)},
            DirectWelcome{12, filled<32>(0xc0)},
            TargetWelcome{
                "node1", "x86_64", 2, true, 60, filled<16>(0xc8), {3, 4096, 1 << 20, 7, 1}, filled<32>(0xd0)},
            KernelText{KernelTextKind::failure, "no"},
            KernelTextsTaken{13},
            KernelTextsAsked{14},
            CopiesAsked{15, 16, 17},
            SharePages{18, 0x7f0000000000, 1 << 20}};
}

// The storage of the spans in commands().
struct Storage {
    std::vector<std::byte> bytes{100, std::byte{7}};
    std::vector<std::uint64_t> proxies{11, 12, 13};
    std::vector<std::uint32_t> ranks{0, 2, 5};
    std::vector<BufferRange> ranges{{0, 0x1000, 64}, {3, 128, 256}};
    std::vector<rma::Segment> segments{{8, 16}, {64, 48}};
    std::vector<KernelBuffer> buffers{{{0, 0x1000, 64}, 1, 0}, {{3, 128, 256}, 3, 0}};
};

inline std::vector<Command> commands(const Storage& s) {
    return {AddProxy{9, s.bytes},
            Ranks{4, pack<std::uint64_t>(s.proxies)},
            CreateTeam{77, 1, 3, 0, pack<std::uint32_t>(s.ranks)},
            DestroyTeam{77},
            SchedulePart{5, 300, 100, s.bytes},
            ForgetSchedule{5},
            Start{5, 77, 9, 10, 2, 0, pack<BufferRange>(s.ranges)},
            BasicSend{77, 2, 42, 11, {0, 0x2000, 512}},
            BasicRecv{77, UINT32_MAX, UINT32_MAX, 12, 1, {4, 0, 1024}},
            BasicProbe{77, 2, UINT32_MAX, 19, 3, 1},
            KeyedSend{77, 2, 13, {5, 6}, {0, 0x2000, 512}},
            KeyedRecv{77, 1, 14, {7, 8}, {4, 0, 1024}},
            KeyedCancel{77, 1, {7, 8}},
            KeyedStore{77, 2, {9, 10}},
            CreateWindow{77, 6, 13, 1, {5, 0, 2048}},
            DestroyWindow{77, 6, 14},
            AttachWindow{77, 6, 0x7f0000001000, 15, {0, 0x7f0000001000, 4096}},
            DetachWindow{77, 6, 0x7f0000001000, 16},
            WindowOperation{77,
                            6,
                            {0, 64, 2, rma::OpKind::get_accumulate, 7, 1, 1},
                            no_completion,
                            2,
                            0,
                            {0, 0x3000, 64},
                            {0, 0x4000, 64},
                            pack<rma::Segment>(s.segments),
                            s.bytes},
            FlushWindow{77, 6, 17, UINT32_MAX},
            KeepLedger{77, 6, 20, {6, 0, 56}},
            Compute{8, 18, pack<KernelBuffer>(s.buffers), s.bytes},
            UnloadKernel{8},
            ForgetPages{0x7f0000000000, 1 << 20}};
}

inline std::vector<std::byte> record_of(const Command& command) {
    std::vector<std::byte> record(record_bytes(command));
    encode_command(command, record);
    return record;
}

}  // namespace offpath::control::samples
