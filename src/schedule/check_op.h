// The part of the validator that checks a single op.
#pragma once

#include "schedule/schedule.h"

#include <string>

namespace offpath::schedule {

// What is wrong with `op` as a member of `schedule`; empty: nothing.
std::string check_op(const Schedule& schedule, const Op& op);

}  // namespace offpath::schedule
