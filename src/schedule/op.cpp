#include "schedule/op.h"

#include <fmt/format.h>

namespace offpath::schedule {
namespace {

enum class Family : std::uint8_t { none, integer, real, complex, logical, pair };

struct TypeFacts {
    Family family = Family::none;
    std::uint32_t bytes = 0;
    bool long_double = false;
};

TypeFacts facts_of(DataType type) {
    using enum DataType;
    switch (type) {
        case int8:
        case uint8:
            return {Family::integer, 1};
        case int16:
        case uint16:
            return {Family::integer, 2};
        case int32:
        case uint32:
            return {Family::integer, 4};
        case int64:
        case uint64:
            return {Family::integer, 8};
        case float32:
            return {Family::real, 4};
        case float64:
            return {Family::real, 8};
        case long_double:
            return {Family::real, 16, true};
        case complex64:
            return {Family::complex, 8};
        case complex128:
            return {Family::complex, 16};
        case complex_long_double:
            return {Family::complex, 32, true};
        case bool8:
            return {Family::logical, 1};
        case logical32:
            return {Family::logical, 4};
        case int32_int32:
        case int16_int32:
        case float32_int32:
        case float32_float32:
            return {Family::pair, 8};
        case int64_int32:
        case float64_int32:
        case float64_float64:
            return {Family::pair, 16};
        case long_double_int32:
            return {Family::pair, 32, true};
        case none:
            break;
    }
    return {};
}

}  // namespace

std::uint32_t size_of(DataType type) {
    return facts_of(type).bytes;
}

bool is_long_double(DataType type) {
    return facts_of(type).long_double;
}

bool defined(DataType type, Reduction reduction) {
    const Family family = facts_of(type).family;
    using enum Reduction;
    switch (reduction) {
        case sum:
        case product:
            return family == Family::integer || family == Family::real || family == Family::complex;
        case minimum:
        case maximum:
            return family == Family::integer || family == Family::real;
        case band:
        case bor:
        case bxor:
            return family == Family::integer;
        case land:
        case lor:
        case lxor:
            return family == Family::integer || family == Family::logical;
        case minloc:
        case maxloc:
            return family == Family::pair;
        case none:
            break;
    }
    return false;
}

const char* to_string(OpKind kind) {
    switch (kind) {
        case OpKind::copy:
            return "copy";
        case OpKind::send:
            return "send";
        case OpKind::recv:
            return "recv";
        case OpKind::reduce:
            return "reduce";
        case OpKind::signal:
            return "signal";
        case OpKind::wait:
            return "wait";
        case OpKind::compute:
            return "compute";
    }
    return "unknown";
}

std::string describe(OpId id, const Op& op) {
    switch (op.kind) {
        case OpKind::send:
            return fmt::format("op {} (send to rank {}, tag {})", id, op.peer, op.tag);
        case OpKind::recv:
            return fmt::format("op {} (recv from rank {}, tag {})", id, op.peer, op.tag);
        case OpKind::signal:
            return fmt::format("op {} (signal {} of rank {})", id, op.tag, op.peer);
        case OpKind::wait:
            return fmt::format("op {} (wait for signal {})", id, op.tag);
        case OpKind::compute:
            return fmt::format("op {} (compute, call {})", id, op.tag);
        case OpKind::copy:
        case OpKind::reduce:
            break;
    }
    return fmt::format("op {} ({})", id, to_string(op.kind));
}

}  // namespace offpath::schedule
