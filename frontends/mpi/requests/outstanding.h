// The list of this rank's outstanding operations.
#pragma once

#include <mutex>

namespace offpath::mpi {

struct OffloadedRequest;

inline std::mutex outstanding_mutex;                    // guards the list
inline OffloadedRequest* newest_outstanding = nullptr;  // linked by `next`

}  // namespace offpath::mpi
