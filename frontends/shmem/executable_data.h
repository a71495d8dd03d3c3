// The writable data of the executable, initialised and not, which OpenSHMEM calls static symmetric memory:
// where it lies, and how it becomes memory that others can map. Data of shared libraries are not part of it.
#pragma once

#include "memory_file.h"

#include <cstddef>
#include <string>

namespace offpath::shmem {

struct DataRange {
    std::byte* begin = nullptr;  // whole pages
    std::size_t bytes = 0;       // 0: there is none
};

// From the headers of the program: what is writable and stays so.
DataRange find_executable_data();

// The same for processes that run the same program, and hardly for others.
std::uint64_t executable_identity();

// Puts a memory file with the same contents in the place of the range. What other threads write meanwhile
// waits and is not lost; what the kernel writes for them (a read() under way) may fail with EFAULT. False:
// nothing has changed, and `problem` says why.
bool share_executable_data(const DataRange& range, MemoryFile& file, std::string& problem);

}  // namespace offpath::shmem
