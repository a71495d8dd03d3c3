// An operation that a PE has given to the devices, as the PE can start it once more (journal.h). Plain
// values.
#pragma once

#include <offpath/collectives.h>

#include <cstddef>
#include <cstdint>

namespace offpath::shmem {

// The atomic operations of core.h.
enum class Amo : std::uint8_t {
    set,
    fetch,
    swap,
    compare_swap,
    add,
    fetch_add,
    and_,
    fetch_and,
    or_,
    fetch_or,
    xor_,
    fetch_xor,
};

// An operation that is not known to be done.
struct Unfinished {
    enum class Kind : std::uint8_t { none, put, strided_put, get, amo, sum };
    Kind kind = Kind::none;
    Amo amo = Amo::set;
    offpath_type_t type = OFFPATH_UINT64;  // of updates
    bool owned = false;                    // the bytes of a put are at `at` in the journal's memory
    bool never_applied = false;            // known; otherwise the mark says it
    int pe = 0;
    std::uint32_t mark = 0;
    std::uint64_t order = 0;    // among all of this PE
    std::uint64_t address = 0;  // at the PE
    std::uint64_t bytes = 0;    // of the data
    const void* source = nullptr;
    std::uint64_t at = 0;
    void* result = nullptr;
    std::uint64_t word = 0, other = 0;  // of an amo
    std::uint32_t element = 0;          // of a strided put, whose elements are `step` bytes apart
    std::uint64_t step = 0;
};

}  // namespace offpath::shmem
