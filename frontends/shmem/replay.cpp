#include "replay.h"

#include "atomics.h"

#include <vector>

namespace offpath::shmem {

namespace {

std::vector<offpath_segment_t> pieces_of(const Unfinished& one) {
    std::vector<offpath_segment_t> pieces(one.bytes / one.element);
    for (std::size_t i = 0; i < pieces.size(); ++i)
        pieces[i] = {one.address + i * one.step, one.element};
    return pieces;
}

}  // namespace

offpath_status_t start_again(const Unfinished& one) {
    offpath_place_t there{static_cast<std::uint32_t>(one.pe), one.address, nullptr, 0};
    std::vector<offpath_segment_t> pieces;
    return waited_for([&](offpath_request_h* request) {
        switch (one.kind) {
            case Unfinished::Kind::strided_put:
                pieces = pieces_of(one);
                there.segments = pieces.data();
                there.segment_count = static_cast<std::uint32_t>(pieces.size());
                [[fallthrough]];
            case Unfinished::Kind::put:
                return offpath_put(world.window, journal.source(one), one.bytes, &there, request);
            case Unfinished::Kind::get:
                return offpath_get(world.window, one.result, one.bytes, &there, request);
            case Unfinished::Kind::amo:
                return ask_device(one.amo, there, one.type, one.word, one.other, one.result, request);
            case Unfinished::Kind::sum:
                return offpath_accumulate(world.window, one.source, one.bytes / one.element, one.type,
                                          OFFPATH_SUM, &there, request);
            case Unfinished::Kind::none:
                break;
        }
        return OFFPATH_ERR_INVALID;
    });
}

}  // namespace offpath::shmem
