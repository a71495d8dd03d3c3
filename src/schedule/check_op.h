// The part of the validator that looks at one op alone.
#pragma once

#include "schedule/schedule.h"

#include <string>

namespace offpath::schedule {

// What is wrong with `op` as a member of `schedule`, or nothing.
std::string check_op(const Schedule& schedule, const Op& op);

}  // namespace offpath::schedule
