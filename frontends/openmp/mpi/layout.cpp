#include "openmp/mpi/layout.h"

#include <algorithm>
#include <cstring>

namespace offpath::region_mpi {
namespace {

// Elements may be addressed from 0 on (MPI_BOTTOM), so this is no arithmetic of pointers.
std::byte* place(const void* elements, std::ptrdiff_t at) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(elements) +
                                        static_cast<std::uintptr_t>(at));
}

}  // namespace

Layout Layout::of_bytes(std::size_t bytes, std::size_t alignment) {
    Layout layout;
    if (bytes > 0) layout.runs.push_back({0, bytes});
    layout.upper = static_cast<std::ptrdiff_t>(bytes);
    layout.alignment = alignment;
    return layout;
}

std::size_t Layout::bytes() const {
    std::size_t sum = 0;
    for (const Run& run : runs)
        sum += run.bytes;
    return sum;
}

bool Layout::is_plain() const {
    if (runs.empty()) return true;
    return runs.size() == 1 && runs[0].at == 0 && extent() == static_cast<std::ptrdiff_t>(runs[0].bytes);
}

bool Layout::append(const Layout& of, std::ptrdiff_t at, std::size_t count) {
    if (count == 0) return true;
    const bool first = runs.empty() && lower == 0 && upper == 0;
    const std::ptrdiff_t last = at + static_cast<std::ptrdiff_t>(count - 1) * of.extent();
    const std::ptrdiff_t low = std::min(at, last) + of.lower, high = std::max(at, last) + of.upper;
    lower = first ? low : std::min(lower, low);
    upper = first ? high : std::max(upper, high);
    if (of.alignment == 0 || alignment == 0)
        alignment = 0;
    else
        alignment = std::max(alignment, of.alignment);
    const auto add = [&](Run run) {
        if (!runs.empty() && runs.back().at + static_cast<std::ptrdiff_t>(runs.back().bytes) == run.at)
            runs.back().bytes += run.bytes;
        else
            runs.push_back(run);
    };
    if (of.is_plain()) {
        if (!of.runs.empty()) add({at, count * of.runs[0].bytes});
        return runs.size() <= most_runs;
    }
    for (std::size_t i = 0; i < count && runs.size() <= most_runs; ++i)
        for (const Run& run : of.runs)
            add({at + static_cast<std::ptrdiff_t>(i) * of.extent() + run.at, run.bytes});
    return runs.size() <= most_runs;
}

void Layout::align() {
    if (alignment <= 1) return;
    const auto step = static_cast<std::ptrdiff_t>(alignment);
    upper = lower + (extent() + step - 1) / step * step;
}

void Layout::pack(const void* elements, std::size_t count, std::byte* packed) const {
    for (std::size_t i = 0; i < count; ++i)
        for (const Run& run : runs) {
            std::memcpy(packed, place(elements, static_cast<std::ptrdiff_t>(i) * extent() + run.at),
                        run.bytes);
            packed += run.bytes;
        }
}

void Layout::unpack(const std::byte* packed, std::size_t bytes, void* elements) const {
    for (std::ptrdiff_t i = 0; bytes > 0; ++i)
        for (const Run& run : runs) {
            const std::size_t length = std::min(run.bytes, bytes);
            if (length == 0) return;
            std::memcpy(place(elements, i * extent() + run.at), packed, length);
            packed += length;
            bytes -= length;
        }
}

}  // namespace offpath::region_mpi
