// Sizes of files under the limit that `ulimit -f` sets. A process that grows a file beyond it is ended by a
// signal (SIGXFSZ), memory files included. Threads: any.
#pragma once

#include <cstddef>

namespace offpath {

// Gives the file this size. False: it was not possible, and errno says why. EFBIG: the limit is lower.
bool set_file_bytes(int fd, std::size_t bytes);
// Whether a file of this size is within the limit.
bool is_file_size_allowed(std::size_t bytes);

}  // namespace offpath
