#include "control/commands.h"

#include <fmt/format.h>

#include <type_traits>

namespace offpath::control {
namespace {

// Returns null if the command is well formed, otherwise what is wrong with it.
template <std::size_t index = 0>
const char* read_any(std::uint16_t kind, FieldReader& in, Command& command) {
    if constexpr (index == std::variant_size_v<Command>) {
        return "an unknown kind";
    } else {
        using C = std::variant_alternative_t<index, Command>;
        if (kind != C::kind) return read_any<index + 1>(kind, in, command);
        return read_body(in, command.emplace<index>());
    }
}

}  // namespace

std::size_t record_bytes(const Command& command) {
    return record_header_bytes + std::visit([](const auto& c) { return body_bytes(c); }, command);
}

void encode_command(const Command& command, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(static_cast<std::uint32_t>(record_bytes(command)));
    out.value(std::visit([](const auto& c) { return std::decay_t<decltype(c)>::kind; }, command));
    out.value(std::uint16_t{0});
    std::visit([&](const auto& c) { write_body(out, c); }, command);
}

Status decode_command(std::span<const std::byte> record, Command& command, std::string& problem) {
    FieldReader in(record);
    const auto bytes = in.value<std::uint32_t>();
    const auto kind = in.value<std::uint16_t>();
    const auto zero = in.value<std::uint16_t>();
    const char* wrong = nullptr;
    Command decoded;
    if (!in.ok() || bytes != record.size() || zero != 0 || bytes > max_record_bytes) {
        wrong = "a wrong header";
    } else {
        wrong = read_any(kind, in, decoded);
        if (!in.complete()) wrong = "a wrong length";
    }
    if (wrong != nullptr) {
        problem = fmt::format("command record of kind {} and {} bytes: {}", kind, record.size(), wrong);
        return Status::protocol;
    }
    command = decoded;
    return Status::ok;
}

}  // namespace offpath::control
