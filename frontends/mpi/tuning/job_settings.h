// The settings of tuning that all ranks share: those of rank 0's environment, and the table of costs that it
// names. Written in MPI_Init, constant afterwards; any thread may read them.
#pragma once

#include <cstdint>

#include "table.h"

namespace offpath::mpi {

// Trivially copyable: all ranks receive rank 0's as bytes.
struct TuningSettings {
    std::uint8_t explain = 0;             // print why calls go to the device or the host
    std::uint8_t refine_sums = 0;         // also refine sums of floating-point numbers
    std::uint8_t deterministic = 0;       // engines depend on the settings only, not on time or a table
    std::uint32_t agree_ms = 250;         // approximate time between two agreements
    std::uint64_t first_trial_after = 0;  // calls before tuning at run time starts; 0: never
};

inline TuningSettings tuning_settings;
inline Table measured_costs;
// The operations whose blocking form may go to the device, one bit each. Where a bit is 0, no table and no
// switch changes that.
inline std::uint32_t blocking_may_pay_bits = 0;

// Whether no call that stays on the host's MPI is printed or explained.
inline bool host_calls_are_quiet = false;

// Reads both on rank 0 and gives them to all ranks. Collective over the world. It ends the job when a setting
// cannot be parsed. A table that cannot be read is reported, and ignored.
void agree_on_tuning();

}  // namespace offpath::mpi
