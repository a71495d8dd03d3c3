// The writable data of the executable, initialised or not, which OpenSHMEM calls static symmetric memory:
// where it is, and how other processes can map it. Data of shared libraries are not part of it.
#pragma once

#include "memory_file.h"

#include <cstddef>
#include <string>

namespace offpath::shmem {

struct DataRange {
    std::byte* begin = nullptr;  // whole pages
    std::size_t bytes = 0;       // 0: there is none
};

// Found in the program's headers: the part that is writable and stays writable.
DataRange find_executable_data();

// A number that is equal for processes that run the same program and very likely differs for others.
std::uint64_t executable_identity();

// Replaces the range by a memory file with the same contents. Writes of other threads meanwhile wait and are
// not lost. Writes of the kernel for them, such as those of a running read(), may fail with EFAULT. False:
// nothing has changed, and `problem` says why.
bool share_executable_data(const DataRange& range, MemoryFile& file, std::string& problem);

}  // namespace offpath::shmem
