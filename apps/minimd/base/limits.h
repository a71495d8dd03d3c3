// The largest values that settings may have. With larger ones, numbers of atoms or steps would overflow.
#pragma once

namespace minimd {

inline constexpr int most_unit_cells = 10000;  // in each dimension
inline constexpr int most_steps = 2000000000;
inline constexpr int most_threads = 4096;
inline constexpr int most_types = 1024;
inline constexpr int most_bins = 100000;
inline constexpr int most_intensity = 1000000;

}  // namespace minimd
