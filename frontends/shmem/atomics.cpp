// Atomic memory operations. There are two cases. If the PE's memory is mapped here and its proxy reaches it
// through a pointer, all access it with atomic instructions: the PEs of its node in this file, and its proxy,
// on behalf of all other PEs, on its own mapping. If the device does not share the memory, every PE,
// including its owner, asks the owner's proxy, and only that proxy accesses it.
#include "atomics.h"

#include "device.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

namespace offpath::shmem {

namespace {

template <typename Word>
Word apply(Amo kind, Word* address, Word operand, Word compare) {
    const std::atomic_ref<Word> word(*address);
    switch (kind) {
        case Amo::set:
            word.store(operand);
            return 0;
        case Amo::fetch:
            return word.load();
        case Amo::swap:
            return word.exchange(operand);
        case Amo::compare_swap:
            word.compare_exchange_strong(compare, operand);
            return compare;
        case Amo::add:
        case Amo::fetch_add:
            return word.fetch_add(operand);
        case Amo::and_:
        case Amo::fetch_and:
            return word.fetch_and(operand);
        case Amo::or_:
        case Amo::fetch_or:
            return word.fetch_or(operand);
        case Amo::xor_:
        case Amo::fetch_xor:
            return word.fetch_xor(operand);
    }
    return 0;
}

template <typename Word>
void apply_here(Amo kind, std::byte* address, std::uint64_t operand, std::uint64_t compare, void* result) {
    const Word former =
        apply(kind, reinterpret_cast<Word*>(address), static_cast<Word>(operand), static_cast<Word>(compare));
    if (result != nullptr) std::memcpy(result, &former, sizeof former);
}

offpath_reduction_t reduction_of(Amo kind) {
    switch (kind) {
        case Amo::add:
        case Amo::fetch_add:
            return OFFPATH_SUM;
        case Amo::and_:
        case Amo::fetch_and:
            return OFFPATH_BAND;
        case Amo::or_:
        case Amo::fetch_or:
            return OFFPATH_BOR;
        case Amo::xor_:
        case Amo::fetch_xor:
            return OFFPATH_BXOR;
        case Amo::fetch:
            return OFFPATH_NO_OP;
        default:
            return OFFPATH_REPLACE;
    }
}

offpath_status_t ask_target_device(Amo kind, const Place& place, offpath_type_t type,
                                   const std::uint64_t& word, const std::uint64_t& other, void* result) {
    const offpath_place_t there = place_at(place);
    if (kind == Amo::compare_swap)
        return offpath_direct_compare_swap(world.window, &word, &other, result, type, there.target,
                                           there.offset);
    return offpath_direct_update(world.window, reduction_of(kind), &word, result, type, there.target,
                                 there.offset);
}

}  // namespace

offpath_status_t ask_device(Amo kind, const offpath_place_t& there, offpath_type_t type,
                            const std::uint64_t& word, const std::uint64_t& other, void* result,
                            offpath_request_h* request) {
    if (kind == Amo::compare_swap)
        return offpath_compare_swap(world.window, &word, &other, result, type, there.target, there.offset,
                                    request);
    const offpath_reduction_t reduction = reduction_of(kind);
    if (result == nullptr)
        return offpath_accumulate(world.window, &word, 1, type, reduction, &there, request);
    return offpath_get_accumulate(world.window, &word, result, 1, type, reduction, &there, request);
}

void amo(Context& context, Amo kind, std::size_t element, void* dest, std::uint64_t operand,
         std::uint64_t compare, void* result, int pe, bool nbi) {
    const Place place = place_of(context, dest, element, dest, pe);
    if (reinterpret_cast<std::uintptr_t>(dest) % element != 0) [[unlikely]]
        fail(fmt::format("an atomic operation on {} bytes at {}, which is not aligned to them", element,
                         fmt::ptr(dest)));
    if (place.segment->atomics_here) {
        if (element == sizeof(std::uint32_t))
            return apply_here<std::uint32_t>(kind, place.here(), operand, compare, result);
        return apply_here<std::uint64_t>(kind, place.here(), operand, compare, result);
    }
    const offpath_type_t type = element == sizeof(std::uint32_t) ? OFFPATH_UINT32 : OFFPATH_UINT64;
    const auto call = [&](offpath_request_h* request) {
        return ask_device(kind, place_at(place), type, operand, compare, result, request);
    };
    Unfinished noted;
    noted.kind = Unfinished::Kind::amo;
    noted.amo = kind;
    noted.type = type;
    noted.bytes = element;
    noted.result = result;
    noted.word = operand;
    noted.other = compare;
    // A call that needs a result waits only for that result, and not for other contexts' operations.
    const bool fetches = result != nullptr;
    if (nbi) return hand_over(context, place, fetches, "an atomic operation", call, noted);
    note(place, noted);
    offpath_status_t status = directly(
        place, element, [&] { return ask_target_device(kind, place, type, operand, compare, result); });
    if (status == OFFPATH_ERR_UNAVAILABLE) status = fetches ? waited_for(call) : call(nullptr);
    if (!ended(status, "an atomic operation")) return;
    if (fetches) return drop_note();
    count(context, place);
}

}  // namespace offpath::shmem
