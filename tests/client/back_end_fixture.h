// BackEndTest: starts a daemon, and sets OFFPATH_BACK_END to the test's parameter, "auto" or "staged".
#pragma once

#include "harness.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace offpath::test {

class BackEndTest : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        ASSERT_TRUE(daemon.ready()) << daemon.log();
        setenv("OFFPATH_BACK_END", GetParam(), 1);
    }
    void TearDown() override { unsetenv("OFFPATH_BACK_END"); }
    TemporaryDirectory directory;
    DaemonProcess daemon{directory.path()};
};

}  // namespace offpath::test
