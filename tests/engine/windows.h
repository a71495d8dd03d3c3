// Windows on every rank of a World, and calls on them, for tests of one-sided operations.
#pragma once

#include "world.h"

#include <gtest/gtest.h>

namespace offpath::testing {

// A window of `bytes` bytes on every rank of a world.
struct Windows {
    Windows(World& made_world, std::size_t bytes)
        : world(made_world), memory(world.ranks()), window(world.ranks()) {
        for (std::uint32_t rank = 0; rank < world.ranks(); ++rank) {
            memory[rank].resize(bytes);
            EXPECT_EQ(
                world.engine_of(rank).create_window(
                    world.team(rank), 3, World::range(memory[rank].data(), bytes), false, &window[rank]),
                Status::ok);
        }
    }
    void start(std::uint32_t rank, engine::OneSidedCall call, Completion* done = nullptr) {
        const Status status = world.engine_of(rank).one_sided(*window[rank], std::move(call), done);
        ASSERT_TRUE(status == Status::in_progress || status == Status::ok) << to_string(status);
        if (status == Status::ok && done != nullptr) (*done)(status);
    }
    Status flush(std::uint32_t rank, std::uint32_t target = engine::every_target) {
        Done done;
        const Status status = world.engine_of(rank).flush_window(*window[rank], target, &done);
        if (status != Status::in_progress) return status;
        if (!world.run_until([&] { return done.status.has_value(); })) return Status::retry;
        return *done.status;
    }
    World& world;
    std::vector<std::vector<std::byte>> memory;
    std::vector<engine::Window*> window;
};

inline engine::OneSidedCall put(std::uint32_t target, std::uint64_t offset, std::span<const std::byte> data) {
    engine::OneSidedCall call;
    call.target = target;
    call.offset = offset;
    call.bytes = data.size();
    if (data.size() <= 200) {
        call.inlined.assign(data.begin(), data.end());
    } else {
        call.origin = World::range(data.data(), data.size());
    }
    return call;
}

template <typename T>
engine::OneSidedCall update(rma::OpKind kind, std::uint8_t reduction, schedule::DataType type,
                            std::uint32_t target, std::uint64_t offset, std::span<const T> operands,
                            T* result = nullptr) {
    engine::OneSidedCall call = put(target, offset, std::as_bytes(operands));
    call.kind = kind;
    call.type = static_cast<std::uint8_t>(type);
    call.reduction = reduction;
    if (result != nullptr) call.result = World::range(result, operands.size_bytes());
    return call;
}

}  // namespace offpath::testing
