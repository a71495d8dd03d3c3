// Memory that peers write: with transports that need nothing from the target, and with one that does.
#include "transport/one_sided.h"
#include "harness.h"
#include "transport/ucx/one_sided.h"
#include "transport/ucx/window_key.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace offpath::transport::test {
namespace {

UcxConfig config_of(const std::string& tls) {
    UcxConfig config;
    config.tls = tls;
    config.net_devices = "lo";
    return config;
}

class Windows : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        std::string problem;
        ASSERT_EQ(make_ucx_one_sided(config_of(GetParam()), writer_, problem), Status::ok) << problem;
        ASSERT_EQ(make_ucx_one_sided(config_of(GetParam()), target_, problem), Status::ok) << problem;
        ASSERT_EQ(target_->offer(1000, window_), Status::ok);
        ASSERT_EQ(writer_->attach(window_->key(), remote_), Status::ok);
    }
    void TearDown() override {
        remote_.reset();
        window_.reset();
    }
    // Waits until the target sees everything that was put.
    Status flush() {
        Counted flushed;
        flushed.start(remote_->flush(&flushed));
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (!flushed.done() && std::chrono::steady_clock::now() < deadline) {
            writer_->progress();
            target_->progress();
        }
        return flushed.status;
    }
    std::unique_ptr<OneSided> writer_, target_;
    std::unique_ptr<Window> window_;
    std::unique_ptr<RemoteWindow> remote_;
};
INSTANTIATE_TEST_SUITE_P(Tls, Windows, testing::Values("sysv", "tcp"),
                         [](const auto& each) { return each.param; });

TEST_P(Windows, WhatIsPutArrives) {
    const auto memory = window_->memory();
    ASSERT_EQ(memory.size(), 1000u);
    EXPECT_EQ(remote_->bytes(), 1000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{}; }));
    const auto payload = make_payload(1, 1000);
    for (std::size_t at = 0; at < 1000; at += 50) {
        // The source may be freed as soon as the call returns.
        std::vector<std::byte> piece(payload.begin() + static_cast<std::ptrdiff_t>(at),
                                     payload.begin() + static_cast<std::ptrdiff_t>(at + 50));
        ASSERT_EQ(remote_->put(at, piece), Status::ok);
    }
    EXPECT_EQ(flush(), Status::ok);
    EXPECT_TRUE(holds_pattern(1, memory.data(), memory.size()));
}

TEST_P(Windows, PutsOutsideAreRefused) {
    const std::vector<std::byte> bytes(65, std::byte{1});
    const auto few = std::span(bytes).first(2);
    EXPECT_EQ(remote_->put(0, bytes), Status::invalid) << "more than max_put";
    EXPECT_EQ(remote_->put(999, few), Status::invalid);
    EXPECT_EQ(remote_->put(1001, few), Status::invalid);
    EXPECT_EQ(remote_->put(UINT64_MAX, few), Status::invalid);
    EXPECT_EQ(remote_->put(998, few), Status::ok);
    EXPECT_EQ(flush(), Status::ok);
    EXPECT_EQ(window_->memory()[999], std::byte{1});
}

// The writer ends in the middle. Afterwards no completion is called, and late bytes do no harm.
TEST_P(Windows, EndWhileSomethingIsUnderWay) {
    Counted flushed;
    const std::vector<std::byte> bytes(64, std::byte{1});
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(remote_->put(0, bytes), Status::ok);
    const bool outstanding = remote_->flush(&flushed) == Status::in_progress;
    window_.reset();
    remote_.reset();
    for (int i = 0; i < 1000; ++i) {
        writer_->progress();
        target_->progress();
    }
    EXPECT_EQ(flushed.calls, 0);
    EXPECT_TRUE(outstanding || GetParam() != "tcp");
}

TEST(Passive, SharedMemoryIsAndTcpIsNot) {
    std::string note;
    EXPECT_TRUE(puts_are_passive(config_of("sysv"), note)) << note;
    EXPECT_TRUE(note.starts_with("passive")) << note;
    EXPECT_FALSE(puts_are_passive(config_of("tcp"), note)) << note;
    EXPECT_TRUE(note.starts_with("not passive")) << note;
    EXPECT_FALSE(puts_are_passive(config_of("nothing"), note));
    EXPECT_NE(note.find("UCX"), std::string::npos) << note;
}

TEST(WindowKey, RoundTripAndEveryDamageToItsHead) {
    const auto worker = make_payload(1, 40), rkey = make_payload(2, 30);
    const auto sealed = ucx::seal_window_key({worker, rkey, 0x1000, 0x200}, 0x0116);
    ucx::WindowKey key;
    ASSERT_EQ(ucx::open_window_key(sealed, 0x0116, key), Status::ok);
    EXPECT_TRUE(std::ranges::equal(key.worker, worker) && std::ranges::equal(key.rkey, rkey));
    EXPECT_EQ(key.address, 0x1000u);
    EXPECT_EQ(key.bytes, 0x200u);
    EXPECT_EQ(ucx::open_window_key(sealed, 0x0115, key), Status::version);
    for (std::size_t length = 0; length < sealed.size(); ++length)
        EXPECT_EQ(ucx::open_window_key(std::span(sealed).first(length), 0x0116, key), Status::protocol)
            << length;
    for (std::size_t at : {0u, 8u, 9u, 11u, 12u, 15u}) {
        auto damaged = sealed;
        damaged[at] ^= std::byte{0x80};
        EXPECT_EQ(ucx::open_window_key(damaged, 0x0116, key), Status::protocol) << at;
    }
    EXPECT_EQ(ucx::open_window_key(ucx::seal_window_key({worker, rkey, 16, UINT64_MAX}, 1), 1, key),
              Status::protocol);
    EXPECT_EQ(ucx::open_window_key(ucx::seal_window_key({worker, {}, 16, 16}, 1), 1, key), Status::protocol);
}

}  // namespace
}  // namespace offpath::transport::test
