// Which fields of an Op each kind uses. The validator and the wire form both follow this one table. Unused
// fields have their default values.
#pragma once

#include "schedule/op.h"

namespace offpath::schedule {

struct Fields {
    bool known = false, peer = false, tag = false, reduction = false, src = false, dst = false, bytes = false;
    bool call = false;  // a KernelCall, which `tag` counts
};

constexpr Fields fields_of(OpKind kind) {
    switch (kind) {
        case OpKind::copy:
            return {.known = true, .src = true, .dst = true, .bytes = true};
        case OpKind::send:
            return {.known = true, .peer = true, .tag = true, .src = true, .bytes = true};
        case OpKind::recv:
            return {.known = true, .peer = true, .tag = true, .dst = true, .bytes = true};
        case OpKind::reduce:
            return {.known = true, .reduction = true, .src = true, .dst = true, .bytes = true};
        case OpKind::signal:
            return {.known = true, .peer = true, .tag = true};
        case OpKind::wait:
            return {.known = true, .tag = true, .bytes = true};
        case OpKind::compute:
            return {.known = true, .tag = true, .call = true};
    }
    return {};
}

}  // namespace offpath::schedule
