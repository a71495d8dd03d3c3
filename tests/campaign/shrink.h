// Makes a failing scenario smaller. Pure.
#pragma once

#include "play.h"

namespace offpath::campaign {

// Leaves out steps, as long as the scenario still fails. `fails` says whether one does.
Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails);

}  // namespace offpath::campaign
