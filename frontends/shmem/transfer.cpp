// Put and get of a single piece.
#include <fmt/format.h>

#include "copy.h"
#include "device.h"
#include "device_loss.h"

namespace offpath::shmem {

namespace {

// From this size on, an operation between nodes that no caller waits for has a request.
constexpr std::size_t request_bytes = 16 << 10;

bool has_request(const Place& place, std::size_t bytes) {
    return place.segment->mapped != nullptr || bytes >= request_bytes;
}

// Large operations that no caller waits for go to the device, so that the processor is free for the program.
bool by_device(const Place& place, std::size_t bytes, bool nbi) {
    return place.segment->mapped == nullptr ||
           (nbi && bytes >= world.near_device_bytes && place.segment->shared && !is_without_device());
}

// A blocking put through the own device, which reads the bytes from memory. It has been noted.
void put_from_memory(Context& context, const offpath_place_t& there, const void* source, std::size_t bytes) {
    std::byte* const slot = bytes <= put_slot_bytes && context.far.has_room() ? take_put_slot() : nullptr;
    if (slot == nullptr) {
        const bool over = ended(waited_for([&](offpath_request_h* request) {
                                    return offpath_put(world.window, source, bytes, &there, request);
                                }),
                                "a put");
        return over ? drop_note() : void();
    }
    std::memcpy(slot, source, bytes);
    Pending::Entry entry;
    entry.slot = slot;
    if (!ended(offpath_put(world.window, slot, bytes, &there, &entry.request), "a put"))
        return give_back_put_slot(slot);
    if (journal.on()) {
        entry.unfinished = journal.take();
        entry.unfinished.source = slot;
    }
    context.far.add(entry);
}

void device_put(Context& context, const Place& place, const void* source, std::size_t bytes, bool nbi) {
    const offpath_place_t there = place_at(place);
    const bool near = place.segment->mapped != nullptr;
    Unfinished noted;
    noted.kind = Unfinished::Kind::put;
    noted.source = source;
    noted.bytes = bytes;
    if (nbi)
        return hand_over(context, place, has_request(place, bytes), "a put",
                         [&](offpath_request_h* request) {
                             return offpath_put(world.window, source, bytes, &there, request);
                         },
                         noted, {nullptr, nullptr, near ? place.here() : nullptr, source, bytes});
    note(place, noted);
    offpath_status_t status = directly(place, bytes, [&] {
        return offpath_direct_put(world.window, source, bytes, there.target, there.offset);
    });
    if (status == OFFPATH_ERR_UNAVAILABLE && bytes > OFFPATH_INLINE_BYTES)
        return put_from_memory(context, there, source, bytes);
    if (status == OFFPATH_ERR_UNAVAILABLE) status = offpath_put(world.window, source, bytes, &there, nullptr);
    if (!ended(status, "a put")) return;
    keep_noted_bytes();
    count(context, place);
}

void device_get(Context& context, void* dest, const Place& place, std::size_t bytes, bool nbi) {
    const offpath_place_t there = place_at(place);
    const bool near = place.segment->mapped != nullptr;
    if (nbi) {
        Unfinished noted;
        noted.kind = Unfinished::Kind::get;
        noted.result = dest;
        noted.bytes = bytes;
        return hand_over(context, place, has_request(place, bytes), "a get",
                         [&](offpath_request_h* request) {
                             return offpath_get(world.window, dest, bytes, &there, request);
                         },
                         noted,
                         {nullptr, nullptr, near ? dest : nullptr, near ? place.here() : nullptr, bytes});
    }
    offpath_status_t status = OFFPATH_OK;
    do {
        status = directly(place, bytes, [&] {
            return offpath_direct_get(world.window, dest, bytes, there.target, there.offset);
        });
        if (status == OFFPATH_ERR_UNAVAILABLE)
            status = waited_for([&](offpath_request_h* request) {
                return offpath_get(world.window, dest, bytes, &there, request);
            });
    } while (!ended(status, "a get"));
}

}  // namespace

void put(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi) {
    if (bytes == 0) return check_pe(context, pe);
    const Place place = place_of(context, dest, bytes, source, pe);
    if (by_device(place, bytes, nbi)) return device_put(context, place, source, bytes, nbi);
    copy(place.here(), source, bytes);
}

void get(Context& context, void* dest, const void* source, std::size_t bytes, int pe, bool nbi) {
    if (bytes == 0) return check_pe(context, pe);
    const Place place = place_of(context, source, bytes, dest, pe);
    if (by_device(place, bytes, nbi)) return device_get(context, dest, place, bytes, nbi);
    copy(dest, place.here(), bytes);
}

void put_signal(Context& context, void* dest, const void* source, std::size_t bytes, std::uint64_t* signal,
                std::uint64_t value, int op, int pe, bool nbi) {
    check_pe(context, pe);
    if (op != signal_set && op != signal_add) [[unlikely]]
        fail(fmt::format("{} is no signal operation: SHMEM_SIGNAL_SET is {}, SHMEM_SIGNAL_ADD {}", op,
                         signal_set, signal_add));
    const Amo kind = op == signal_add ? Amo::add : Amo::set;
    if (bytes == 0) return amo(context, kind, sizeof *signal, signal, value, 0, nullptr, pe, nbi);
    const Place place = place_of(context, dest, bytes, source, pe);
    // Check the signal before any data are written.
    const Place flag = place_of(context, signal, sizeof *signal, source, pe);
    if (!by_device(place, bytes, nbi)) {
        copy(place.here(), source, bytes);
        std::atomic_thread_fence(std::memory_order_release);
        return amo(context, kind, sizeof *signal, signal, value, 0, nullptr, pe, nbi);
    }
    device_put(context, place, source, bytes, nbi);
    // The device changes the signal too, so that it changes after the data.
    must(offpath_window_fence(world.window, static_cast<std::uint32_t>(flag.pe)), "a signal");
    const offpath_place_t there = place_at(flag);
    const offpath_reduction_t change = kind == Amo::add ? OFFPATH_SUM : OFFPATH_REPLACE;
    Unfinished noted;
    noted.kind = Unfinished::Kind::amo;
    noted.amo = kind;
    noted.bytes = sizeof value;
    noted.word = value;
    note(flag, noted);
    offpath_status_t status = OFFPATH_ERR_UNAVAILABLE;
    if (!nbi)
        status = directly(flag, sizeof value, [&] {
            return offpath_direct_update(world.window, change, &value, nullptr, OFFPATH_UINT64, there.target,
                                         there.offset);
        });
    if (status == OFFPATH_ERR_UNAVAILABLE)
        status = offpath_accumulate(world.window, &value, 1, OFFPATH_UINT64, change, &there, nullptr);
    if (ended(status, "a signal")) count(context, flag);
}

}  // namespace offpath::shmem
