// Strided put and get. If the memory is mapped, this process copies element by element. Otherwise the
// elements are contiguous at this end. They go straight to the target's device as one request with the
// stride, or as a list of segments.
#include "copy.h"
#include "device.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace offpath::shmem {

namespace {

// Accesses the elements of a strided array, `step` bytes apart.
template <typename Byte>
struct Elements {
    Byte* first = nullptr;
    std::size_t step = 0;
    Byte* at(std::size_t i) const { return first + i * step; }
};

void check_strides(std::ptrdiff_t dest, std::ptrdiff_t source, std::size_t element, std::size_t count) {
    constexpr auto most = static_cast<std::size_t>(PTRDIFF_MAX);
    const auto largest = static_cast<std::size_t>(std::max(dest, source));
    if (dest < 1 || source < 1)
        fail(fmt::format("strides of {} and {} elements: at least 1 is accepted", dest, source));
    if (largest > most / element || count > most / (largest * element))
        fail(
            fmt::format("{} elements with strides of {} and {} are larger than memory", count, dest, source));
}

std::size_t extent(std::ptrdiff_t stride, std::size_t element, std::size_t count) {
    return ((count - 1) * static_cast<std::size_t>(stride) + 1) * element;
}

template <std::size_t fixed>
void copy_elements(Elements<std::byte> to, Elements<const std::byte> from, std::size_t count,
                   std::size_t element) {
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(to.at(i), from.at(i), fixed > 0 ? fixed : element);
}

void copy_strided(Elements<std::byte> to, Elements<const std::byte> from, std::size_t count,
                  std::size_t element) {
    switch (element) {
        case 1:
            return copy_elements<1>(to, from, count, element);
        case 2:
            return copy_elements<2>(to, from, count, element);
        case 4:
            return copy_elements<4>(to, from, count, element);
        case 8:
            return copy_elements<8>(to, from, count, element);
        case 16:
            return copy_elements<16>(to, from, count, element);
        default:
            return copy_elements<0>(to, from, count, element);
    }
}

// From element `begin` on, calls start(first element, pieces) with as many pieces as one operation accepts.
// Waits for all operations.
template <typename Start>
offpath_status_t try_in_pieces(const Place& place, std::size_t step, std::size_t element, std::size_t begin,
                               std::size_t count, Start&& start) {
    std::vector<offpath_segment_t> pieces;
    std::vector<offpath_request_h> requests;
    for (std::size_t first = begin; first < count; first += pieces.size()) {
        pieces.resize(std::min<std::size_t>(count - first, OFFPATH_MAX_SEGMENTS));
        for (std::size_t i = 0; i < pieces.size(); ++i)
            pieces[i] = {place.there() + (first + i) * step, element};
        const offpath_place_t there{static_cast<std::uint32_t>(place.pe), 0, pieces.data(),
                                    static_cast<std::uint32_t>(pieces.size())};
        const offpath_status_t status =
            start(first * element, pieces.size() * element, there, &requests.emplace_back());
        if (status != OFFPATH_OK) return status;
    }
    for (offpath_request_h request : requests) {
        if (const offpath_status_t status = offpath_request_wait(request); status != OFFPATH_OK)
            return status;
        (void)offpath_request_free(request);
    }
    return OFFPATH_OK;
}

// If a device is lost, all pieces are moved again.
template <typename Start>
void in_pieces(const Place& place, std::size_t step, std::size_t element, std::size_t begin,
               std::size_t count, const Start& start) {
    while (!ended(try_in_pieces(place, step, element, begin, count, start), "a strided transfer")) {
    }
}

// The number of elements in one request to the target's device, which may move a part of a transfer or all of
// it.
std::size_t direct_elements(std::size_t element, std::size_t count) {
    return std::min<std::size_t>({count, OFFPATH_DIRECT_ELEMENTS, OFFPATH_DIRECT_BYTES / element});
}

// Returns how many elements, from the first on, took the short way, which is a request to the target's
// device.
std::size_t get_directly(const Place& place, std::size_t step, std::byte* packed, std::size_t element,
                         std::size_t count) {
    std::size_t got = 0;
    while (got < count) {
        const std::size_t now = direct_elements(element, count - got);
        if (now == 0) break;
        const offpath_status_t status = directly(place, now * element, [&] {
            return offpath_direct_get_strided(world.window, packed + got * element, element, now, step,
                                              static_cast<std::uint32_t>(place.pe),
                                              place.there() + got * step);
        });
        if (status == OFFPATH_ERR_UNAVAILABLE) break;
        if (ended(status, "a strided get")) got += now;
    }
    return got;
}

// The same for a put. The short way accepts only a limited number of operations that no caller waits for. If
// there are several pieces and it refuses one, this function waits for the operations before and tries once
// more. That takes less time than a list of segments.
std::size_t put_directly(const Place& place, std::size_t step, const std::byte* packed, std::size_t element,
                         std::size_t count) {
    const auto pe = static_cast<std::uint32_t>(place.pe);
    std::size_t put = 0;
    bool waited = direct_elements(element, count) == count;
    while (put < count) {
        const std::size_t now = direct_elements(element, count - put);
        if (now == 0) break;
        Unfinished noted;
        noted.kind = Unfinished::Kind::strided_put;
        noted.source = packed + put * element;
        noted.bytes = now * element;
        noted.element = static_cast<std::uint32_t>(element);
        noted.step = step;
        Place piece = place;
        piece.offset += put * step;
        note(piece, noted);
        const offpath_status_t status = directly(place, now * element, [&] {
            return offpath_direct_put_strided(world.window, packed + put * element, element, now, step, pe,
                                              piece.there());
        });
        if (status != OFFPATH_ERR_UNAVAILABLE) {
            // After a recovery it has been put, too.
            if (ended(status, "a strided put")) keep_noted_bytes();
            put += now;
            waited = false;
            continue;
        }
        drop_note();
        if (waited || !place.segment->shared) break;
        (void)ended(offpath_window_flush(world.window, pe, nullptr), "what was started before");
        waited = true;
    }
    return put;
}

}  // namespace

void put_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe) {
    if (count == 0) return check_pe(context, pe);
    check_strides(dest_stride, source_stride, element, count);
    const Place place = place_of(context, dest, extent(dest_stride, element, count), source, pe);
    const std::size_t step = static_cast<std::size_t>(dest_stride) * element;
    const Elements<const std::byte> from{static_cast<const std::byte*>(source),
                                         static_cast<std::size_t>(source_stride) * element};
    if (place.here() != nullptr) return copy_strided({place.here(), step}, from, count, element);
    const std::byte* packed = from.first;
    std::vector<std::byte> copied;
    if (source_stride != 1) {
        copied.resize(count * element);
        copy_strided({copied.data(), element}, from, count, element);
        packed = copied.data();
    }
    if (dest_stride == 1) return put(context, dest, packed, count * element, pe, false);
    const std::size_t put = put_directly(place, step, packed, element, count);
    if (put > 0) offpath::shmem::count(context, place);
    in_pieces(
        place, step, element, put, count,
        [&](std::size_t at, std::size_t bytes, const offpath_place_t& there, offpath_request_h* request) {
            return offpath_put(world.window, packed + at, bytes, &there, request);
        });
}

void get_strided(Context& context, void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t element, std::size_t count, int pe) {
    if (count == 0) return check_pe(context, pe);
    check_strides(dest_stride, source_stride, element, count);
    const Place place = place_of(context, source, extent(source_stride, element, count), dest, pe);
    const std::size_t step = static_cast<std::size_t>(source_stride) * element;
    const Elements<std::byte> to{static_cast<std::byte*>(dest),
                                 static_cast<std::size_t>(dest_stride) * element};
    if (place.here() != nullptr) return copy_strided(to, {place.here(), step}, count, element);
    std::byte* packed = to.first;
    std::vector<std::byte> fetched;
    if (dest_stride != 1) {
        fetched.resize(count * element);
        packed = fetched.data();
    }
    if (source_stride == 1) {
        get(context, packed, source, count * element, pe, false);
    } else {
        const std::size_t got = get_directly(place, step, packed, element, count);
        in_pieces(
            place, step, element, got, count,
            [&](std::size_t at, std::size_t bytes, const offpath_place_t& there, offpath_request_h* request) {
                return offpath_get(world.window, packed + at, bytes, &there, request);
            });
    }
    if (dest_stride != 1) copy_strided(to, {packed, element}, count, element);
}

}  // namespace offpath::shmem
