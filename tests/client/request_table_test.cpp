// The slots of requests, without a proxy.
#include "client/request.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace offpath::client {
namespace {

struct Memory {
    std::array<control::CompletionEntry, 1> entries{};
    std::atomic<std::uint32_t> sequence{0}, waiting{0};
};

class Channel final : Memory, public control::ClientChannel {
  public:
    Channel() : ClientChannel(entries.data(), entries.size(), {&sequence, &waiting}) {}
    Status post(const control::Command&) override { return Status::ok; }
    bool ring() override { return false; }
    void complete(std::uint32_t slot) {
        completion(slot).word.store(control::completion_word(Status::ok), std::memory_order_release);
    }
};

// Several threads may wait for a request. One of them takes its completion, and the next operation its slot.
TEST(RequestTable, AWaitEndsWithItsRequestAndNotWithTheNextOneOfTheSlot) {
    Channel channel;
    RequestTable table(channel);
    offpath_request* const first = table.start(nullptr);
    ASSERT_NE(first, nullptr);
    EXPECT_TRUE(table.pending(*first));
    channel.complete(first->slot);
    EXPECT_FALSE(table.pending(*first));
    EXPECT_TRUE(table.take(first));
    offpath_request* const second = table.start(nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->slot, first->slot);
    EXPECT_FALSE(table.pending(*first));
    EXPECT_TRUE(table.pending(*second));
    EXPECT_EQ(first->seen(), Status::ok);
    EXPECT_EQ(table.start(nullptr), nullptr) << "there is one slot";
}

}  // namespace
}  // namespace offpath::client
