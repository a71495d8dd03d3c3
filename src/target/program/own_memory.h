// Accesses this process's memory at addresses that another process names. If there is no
// memory, the call reports that and causes no fault. Threads: any.
#pragma once

#include "memory/piece_lists.h"
#include "target/records.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::target::own_memory {

// Returns how many bytes from `address` on could be read.
std::size_t read(std::uint64_t address, std::span<std::byte> into);
bool readable(std::uint64_t address);
// False: not all of it can be written.
bool write(std::span<const memory::ForeignPiece> pieces);
// What is mapped now. Neighbours are given as one.
std::vector<AddressRange> ranges();

}  // namespace offpath::target::own_memory
