// The end of every call of the C API that may allocate: no exception leaves the library.
#pragma once

#include <offpath/types.h>

namespace offpath::client {

// To be called in a catch block. OFFPATH_ERR_MEMORY for std::bad_alloc, else OFFPATH_ERR_SYSTEM with a line
// in the log that names `call`. Any thread.
offpath_status_t caught(const char* call) noexcept;

}  // namespace offpath::client
