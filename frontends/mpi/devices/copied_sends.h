// Sends whose payload was copied: done for the program, but not for the device. Threads: any.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <memory>

namespace offpath::mpi::devices {

// Keeps the copy until the send is done. Waits for an older one if there are too many.
void keep_copied_send(offpath_request_h request, std::unique_ptr<std::byte[]> copy);

// Frees those that are done. How many are left.
std::size_t left_copied_sends();

}  // namespace offpath::mpi::devices
