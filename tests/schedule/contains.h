// EXPECT_TRUE(contains(text, "part")) shows both texts when it fails.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace offpath::testing {

inline ::testing::AssertionResult contains(const std::string& text, std::string_view part) {
    if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

}  // namespace offpath::testing
