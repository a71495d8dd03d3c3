// An atomic operation as the device knows it.
#pragma once

#include "core.h"

#include <offpath/windows.h>

#include <cstdint>

namespace offpath::shmem {

// `word` and `other` (the value to compare with) have the element in their low bytes, which come first in
// memory.
offpath_status_t ask_device(Amo kind, const offpath_place_t& there, offpath_type_t type,
                            const std::uint64_t& word, const std::uint64_t& other, void* result,
                            offpath_request_h* request);

}  // namespace offpath::shmem
