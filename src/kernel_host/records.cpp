#include "kernel_host/records.h"

#include "base/field_codec.h"

namespace offpath::kernel_host {
namespace {

constexpr std::size_t max_text = 1024;

struct Writer {
    FieldWriter& out;
    void operator()(const Load& r) const {
        out.value(r.number);
        out.value(r.kernel);
        out.text(r.path);
        out.text(r.symbol);
    }
    void operator()(const Unload& r) const { out.value(r.kernel); }
    void operator()(const Unmap& r) const { out.value(r.region); }
    void operator()(const Run& r) const {
        out.value(r.number);
        out.value(r.kernel);
        out.blob(std::as_bytes(std::span(r.regions)));
        out.blob(std::as_bytes(std::span(r.buffers)));
        out.blob(r.arguments);
    }
};

template <typename Item>
bool read_items(FieldReader& in, std::vector<Item>& items) {
    const auto bytes = in.blob(max_record_bytes);
    items.resize(bytes.size() / sizeof(Item));
    if (!items.empty()) std::memcpy(items.data(), bytes.data(), items.size() * sizeof(Item));
    return bytes.size() % sizeof(Item) == 0;
}

bool read(FieldReader& in, Load& r) {
    r.number = in.value<std::uint64_t>();
    r.kernel = in.value<std::uint64_t>();
    r.path = in.text(max_record_bytes);
    r.symbol = in.text(max_record_bytes);
    return true;
}
bool read(FieldReader& in, Unload& r) {
    r.kernel = in.value<std::uint64_t>();
    return true;
}
bool read(FieldReader& in, Unmap& r) {
    r.region = in.value<std::uint64_t>();
    return true;
}
bool read(FieldReader& in, Run& r) {
    r.number = in.value<std::uint64_t>();
    r.kernel = in.value<std::uint64_t>();
    return read_items(in, r.regions) && read_items(in, r.buffers) && read_items(in, r.arguments) &&
           r.regions.size() <= max_regions;
}

template <typename R>
bool read_as(FieldReader& in, Request& request) {
    R r;
    if (!read(in, r) || !in.complete()) return false;
    request = std::move(r);
    return true;
}

}  // namespace

std::vector<std::byte> encode(const Request& request) {
    std::vector<std::byte> bytes(max_record_bytes);
    FieldWriter out(bytes);
    out.value(static_cast<std::uint32_t>(request.index()));
    std::visit(Writer{out}, request);
    bytes.resize(out.used());
    return bytes;
}

bool decode(std::span<const std::byte> record, Request& request) {
    FieldReader in(record);
    switch (in.value<std::uint32_t>()) {
        case 0:
            return read_as<Load>(in, request);
        case 1:
            return read_as<Unload>(in, request);
        case 2:
            return read_as<Unmap>(in, request);
        case 3:
            return read_as<Run>(in, request);
        default:
            return false;
    }
}

std::vector<std::byte> encode(const Answer& answer) {
    std::vector<std::byte> bytes(max_text + 64);
    FieldWriter out(bytes);
    out.value(answer.number);
    out.value(static_cast<std::int32_t>(answer.status));
    out.text(answer.text.substr(0, max_text));
    bytes.resize(out.used());
    return bytes;
}

bool decode(std::span<const std::byte> record, Answer& answer) {
    FieldReader in(record);
    Answer read;
    read.number = in.value<std::uint64_t>();
    const bool known = status_of(in.value<std::int32_t>(), read.status);
    read.text = in.text(max_text);
    if (!known || !in.complete()) return false;
    answer = std::move(read);
    return true;
}

}  // namespace offpath::kernel_host
