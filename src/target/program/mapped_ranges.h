// What this process has mapped. Threads: any.
#pragma once

#include "target/records.h"

#include <vector>

namespace offpath::target {

// Neighbours are given as one range.
std::vector<AddressRange> mapped_ranges();

}  // namespace offpath::target
