// What LLVM 16's libomptarget and its plug-ins give each other: the layout of its structures and the meaning
// of its numbers. Names as there, without prefixes. LLVM 15 and 17 differ in KernelArguments.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::openmp {

constexpr std::int32_t success = 0, failure = ~0;

struct OffloadEntry {
    void* address;  // of the function or variable
    char* name;
    std::size_t bytes;  // of a variable; 0: a function
    std::int32_t flags, reserved;
};
struct DeviceImage {
    void *begin, *end;
    OffloadEntry *entries_begin, *entries_end;
};
struct TargetTable {
    OffloadEntry *begin, *end;
};
// Of an argument, in KernelArguments.types.
enum MapType : std::int64_t { map_to = 0x1, map_parameter = 0x20, map_private = 0x80, map_literal = 0x100 };

struct AsyncInfo {
    void* queue;
};
struct KernelArguments {
    std::uint32_t version, count;
    void **base_pointers, **pointers;
    std::int64_t *sizes, *types;
    void **names, **mappers;
    std::uint64_t trip_count, flags;
    std::uint32_t teams[3], thread_limit[3], dynamic_memory;
};

enum AllocationKind : std::int32_t {
    device_memory = 0,
    host_memory = 1,
    shared_memory = 2,
    default_memory = 3
};

}  // namespace offpath::openmp
