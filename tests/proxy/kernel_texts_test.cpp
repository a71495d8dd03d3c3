// What waits for a client that does not take texts of its kernels is bounded, and keeps its order.
#include "proxy/kernel_texts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace offpath::proxy {
namespace {

using control::KernelText;
using control::KernelTextKind;
using control::KernelTextsAsked;

struct TextsToAClient : testing::Test {
    std::vector<control::Message> sent;
    KernelTexts texts{[this](const control::Message& message) { sent.push_back(message); }};

    std::string text(std::size_t i) const { return std::get<KernelText>(sent.at(i)).text; }
};

TEST_F(TextsToAClient, WaitForTheClient) {
    std::size_t added = 0;
    while (texts.room())
        texts.output(KernelTextKind::output, std::to_string(added++));
    EXPECT_EQ(sent.size(), control::max_kernel_texts);
    EXPECT_EQ(added, control::max_kernel_texts + KernelTexts::max_waiting);
    texts.answer(KernelTextsAsked{5});
    for (std::uint64_t taken = 1; taken <= added; ++taken)
        EXPECT_TRUE(texts.taken(taken));
    ASSERT_EQ(sent.size(), added + 1);
    for (std::size_t i = 0; i < added; ++i)
        EXPECT_EQ(text(i), std::to_string(i));
    EXPECT_EQ(std::get<KernelTextsAsked>(sent.back()).number, 5u);
    EXPECT_TRUE(texts.room());
}

TEST_F(TextsToAClient, AreNotTakenBeforeTheyAreSent) {
    texts.failure("no");
    EXPECT_FALSE(texts.taken(2));
    EXPECT_TRUE(texts.taken(1));
    EXPECT_FALSE(texts.taken(0));
}

TEST_F(TextsToAClient, AreBoundedForFailures) {
    for (int i = 0; i < 10000; ++i)
        texts.failure("no");
    for (std::uint64_t taken = 1; texts.taken(taken); ++taken) {
    }
    EXPECT_EQ(sent.size(), control::max_kernel_texts + KernelTexts::max_waiting + KernelTexts::max_failures);
}

TEST_F(TextsToAClient, AreDivided) {
    texts.output(KernelTextKind::error_output, std::string(2 * control::max_kernel_text_bytes + 1, 'x'));
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(text(1).size(), control::max_kernel_text_bytes);
    EXPECT_EQ(text(2), "x");
    EXPECT_EQ(std::get<KernelText>(sent[2]).kind, KernelTextKind::error_output);
    sent.clear();
    texts.output(KernelTextKind::output, "short\n" + std::string(control::max_kernel_text_bytes, 'y') + "\n");
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(text(0), "short\n");
    EXPECT_EQ(text(1).size(), control::max_kernel_text_bytes);
    EXPECT_EQ(text(2), "\n");
}

}  // namespace
}  // namespace offpath::proxy
