#include "proxy/steady_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace offpath::proxy {
namespace {

constexpr const char* variable = "GLIBC_TUNABLES";
constexpr const char* our_tunable = "glibc.malloc.tcache_count=0";

// Arguments that must not be used: the program would start anew.
std::string after(const std::string& tunables) {
    setenv(variable, tunables.c_str(), 1);
    run_without_thread_caches(nullptr);
    const char* const left = std::getenv(variable);
    std::string result = left != nullptr ? left : "(none)";
    unsetenv(variable);
    return result;
}

TEST(SteadyMemory, WhatWasSetForTheDaemonIsNotPassedOn) {
    EXPECT_EQ(after(our_tunable), "(none)");
    EXPECT_EQ(after(std::string("glibc.malloc.check=1:") + our_tunable), "glibc.malloc.check=1");
}

TEST(SteadyMemory, TheUsersSizeStays) {
    EXPECT_EQ(after("glibc.malloc.tcache_count=16"), "glibc.malloc.tcache_count=16");
    EXPECT_EQ(after(std::string(our_tunable) + ":glibc.malloc.check=1"),
              std::string(our_tunable) + ":glibc.malloc.check=1");
}

}  // namespace
}  // namespace offpath::proxy
