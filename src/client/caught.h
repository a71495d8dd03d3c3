// Handles exceptions at the end of every C API call that may allocate: no exception leaves the library.
#pragma once

#include <offpath/types.h>

namespace offpath::client {

// Call it in a catch block. Returns OFFPATH_ERR_MEMORY for std::bad_alloc. Otherwise it returns
// OFFPATH_ERR_SYSTEM and logs a line that names `call`. Any thread.
offpath_status_t caught(const char* call) noexcept;

}  // namespace offpath::client
