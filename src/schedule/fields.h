// Which fields of an Op each kind uses. The validator and the wire form both follow this one table. Unused
// fields have their default values.
#pragma once

#include "schedule/op.h"

namespace offpath::schedule {

enum class Place : std::uint8_t { none, own, remote };  // whose slots a BufferRef points into

struct Fields {
    bool known = false, peer = false, tag = false, reduction = false, bytes = false;
    Place src = Place::none, dst = Place::none;
};

constexpr Fields fields_of(OpKind kind) {
    using enum Place;
    switch (kind) {
        case OpKind::copy:
            return {.known = true, .bytes = true, .src = own, .dst = own};
        case OpKind::put:
            return {.known = true, .peer = true, .bytes = true, .src = own, .dst = remote};
        case OpKind::get:
            return {.known = true, .peer = true, .bytes = true, .src = remote, .dst = own};
        case OpKind::send:
            return {.known = true, .peer = true, .tag = true, .bytes = true, .src = own};
        case OpKind::recv:
            return {.known = true, .peer = true, .tag = true, .bytes = true, .dst = own};
        case OpKind::reduce:
            return {.known = true, .reduction = true, .bytes = true, .src = own, .dst = own};
        case OpKind::signal:
            return {.known = true, .peer = true, .tag = true};
        case OpKind::wait:
            return {.known = true, .tag = true, .bytes = true};
        case OpKind::compute:
            return {.known = true, .tag = true, .bytes = true, .src = own, .dst = own};
    }
    return {};
}

}  // namespace offpath::schedule
