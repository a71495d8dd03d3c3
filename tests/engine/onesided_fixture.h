// The fixture of the tests of windows: every kind of memory and number of proxies (onesided_test.cpp lists
// them), over a fabric that reorders.
#pragma once

#include "windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace offpath::testing {

using engine::OneSidedCall;
using memory::BackEnd;
using rma::OpKind;
using schedule::DataType;
using schedule::Reduction;

class OneSided : public ::testing::TestWithParam<std::tuple<BackEnd, std::uint32_t>> {
  protected:
    WorldOptions options(std::uint32_t ranks) const {
        WorldOptions made;
        made.ranks = ranks;
        made.memory = std::get<0>(GetParam());
        made.proxies = std::min(ranks, std::get<1>(GetParam()));
        made.engine.round_pieces = 300;
        made.faults = transport::FaultPlan{.seed = 5, .delay_message = 0.4, .delay_completion = 0.2};
        return made;
    }
};

}  // namespace offpath::testing
