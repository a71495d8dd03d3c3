#include "proxy/bounded_answer.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace offpath::proxy {
namespace {

TEST(BoundedAnswer, IsWhatTheQuestionReturns) {
    const std::string large(1 << 20, 'x');
    EXPECT_EQ(answer_within(std::chrono::minutes(1), [&] { return large; }), large);
    EXPECT_EQ(answer_within(std::chrono::minutes(1), [] { return std::string(); }), std::string());
}

TEST(BoundedAnswer, QuestionThatNeverEndsHasNone) {
    const auto endless = [] {
        while (true)
            pause();
        return std::string();
    };
    EXPECT_EQ(answer_within(std::chrono::milliseconds(1), endless), std::nullopt);
}

TEST(BoundedAnswer, ChildThatEndsWithoutOneHasNone) {
    EXPECT_EQ(answer_within(std::chrono::minutes(1), []() -> std::string { _exit(1); }), std::nullopt);
}

}  // namespace
}  // namespace offpath::proxy
