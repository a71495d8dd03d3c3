#include "kernel_host/records.h"

#include <utility>

namespace offpath::kernel_host {
namespace {

template <typename R>
bool read_record(FieldReader& in, R& record) {
    R read;
    if (read_body(in, read) != nullptr || !in.complete()) return false;
    record = std::move(read);
    return true;
}

template <std::size_t index = 0>
bool read_request(std::uint32_t kind, FieldReader& in, Request& request) {
    if constexpr (index == std::variant_size_v<Request>) {
        return false;
    } else {
        if (kind != index) return read_request<index + 1>(kind, in, request);
        std::variant_alternative_t<index, Request> read;
        if (!read_record(in, read)) return false;
        request = std::move(read);
        return true;
    }
}

}  // namespace

std::vector<std::byte> encode(const Request& request) {
    std::vector<std::byte> bytes(max_record_bytes);
    FieldWriter out(bytes);
    out.value(static_cast<std::uint32_t>(request.index()));
    std::visit([&out](const auto& record) { write_body(out, record); }, request);
    bytes.resize(out.used());
    return bytes;
}

bool decode(std::span<const std::byte> record, Request& request) {
    FieldReader in(record);
    const auto kind = in.value<std::uint32_t>();
    return read_request(kind, in, request);
}

std::vector<std::byte> encode(const Answer& answer) {
    std::vector<std::byte> bytes(max_answer_text_bytes + 64);
    FieldWriter out(bytes);
    write_body(out, answer);
    bytes.resize(out.used());
    return bytes;
}

bool decode(std::span<const std::byte> record, Answer& answer) {
    FieldReader in(record);
    return read_record(in, answer);
}

}  // namespace offpath::kernel_host
