#include "control/messages.h"

#include "base/field_lists.h"

#include <fmt/format.h>

#include <memory>

namespace offpath::control {
namespace {

constexpr std::uint32_t message_magic = 0x4d50464f;  // "OFPM"
constexpr std::uint32_t other_order_magic = 0x4f46504d;
constexpr std::uint32_t byte_order_mark = 0x01020304;
constexpr std::uint8_t word_bytes = 8;

// A kind is the position in the variant, counted from 1; a test pins the kinds.
constexpr std::uint16_t kind_of(std::size_t index) {
    return static_cast<std::uint16_t>(index + 1);
}

// Some messages start with the byte order and the word size of the machine.
class MessageOut : public FieldsOut {
  public:
    using FieldsOut::FieldsOut;
    void machine() { (*this)(byte_order_mark, word_bytes); }
};

class MessageIn : public FieldsIn {
  public:
    using FieldsIn::FieldsIn;
    void machine() {
        (*this)(mark_, word_);
        told_ = reader().ok();
    }
    // Whether the message comes from a machine whose fields this one can read. Otherwise `problem` says why.
    bool same_machine(std::string& problem) const {
        if (!told_) return true;  // it says nothing about that, or is too short
        if (mark_ != byte_order_mark) {
            problem = fmt::format(
                "the other side has another byte order (its mark reads {:08x}); little-endian is accepted",
                mark_);
            return false;
        }
        if (word_ != word_bytes) {
            problem = fmt::format("the other side's machine words have {} bits; {} are accepted", word_ * 8,
                                  word_bytes * 8);
            return false;
        }
        return true;
    }

  private:
    std::uint32_t mark_ = 0;
    std::uint8_t word_ = 0;
    bool told_ = false;
};

std::string region_problem(std::uint64_t id, std::uint64_t address, std::uint64_t bytes) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 47;
    if (id != 0 && bytes != 0 && bytes <= limit && address <= UINT64_MAX - bytes) return {};
    return fmt::format("region {}: {} bytes at {:#x} is out of range", id, bytes, address);
}

template <typename M>
Status read_message(FieldReader& in, M& message, std::string& problem) {
    MessageIn fields(in);
    M::fields(message, fields);
    if (!fields.same_machine(problem)) return Status::version;
    if (!in.complete()) {
        problem = "a wrong length";
        return Status::protocol;
    }
    const char* const wrong = fields.wrong();
    problem = wrong != nullptr ? wrong : "";
    if constexpr (requires { message.problem(); })
        if (problem.empty()) problem = message.problem();
    return problem.empty() ? Status::ok : Status::protocol;
}

template <std::size_t index = 0>
Status read_any_message(std::uint16_t kind, FieldReader& in, Message& message, std::string& problem) {
    if constexpr (index == std::variant_size_v<Message>) {
        problem = fmt::format("an unknown kind; 1 to {} are accepted", index);
        return Status::protocol;
    } else {
        if (kind != kind_of(index)) return read_any_message<index + 1>(kind, in, message, problem);
        return read_message(in, message.emplace<index>(), problem);
    }
}

}  // namespace

std::string Hello::problem() const {
    if (purpose > Purpose::target_facts)
        return fmt::format("hello: unknown purpose {}; 0 to 2 are accepted", static_cast<int>(purpose));
    if (job_size == 0 || job_size > max_job_size || job_rank >= job_size)
        return fmt::format("hello: rank {} of a job of {} ranks; at most {} ranks are accepted", job_rank,
                           job_size, max_job_size);
    const auto number = static_cast<unsigned>(back_end);
    if (number > 4 || number == 1)
        return fmt::format("hello: unknown back end {}; 0, 2, 3 and 4 are accepted", number);
    return {};
}

std::string RegisterRegion::problem() const {
    return region_problem(id, address, bytes);
}

std::string SharePages::problem() const {
    return region_problem(id, address, bytes);
}

std::string RegisterExported::problem() const {
    return region_problem(id, address, bytes);
}

std::string LoadKernel::problem() const {
    if (stream >= max_kernel_streams)
        return fmt::format("a kernel of stream {}; {} streams are accepted", stream, max_kernel_streams);
    const bool named = id != 0 && !path.empty() && !symbol.empty();
    return named && (path + symbol).find('\0') == std::string::npos
               ? ""
               : "a kernel without number, path or symbol";
}

std::string KernelText::problem() const {
    if (kind >= KernelTextKind::output && kind <= KernelTextKind::failure) return {};
    return fmt::format("text of kernels: unknown kind {}; 1 to 3 are accepted", static_cast<int>(kind));
}

std::vector<std::byte> encode_message(const Message& message) {
    // Almost all messages are short, so the room for the longest is neither cleared nor kept.
    const auto room = std::make_unique_for_overwrite<std::byte[]>(max_message_bytes);
    FieldWriter out({room.get(), max_message_bytes});
    out.value(message_magic);
    out.value(protocol_version);
    out.value(kind_of(message.index()));
    std::visit([&out](const auto& m) { m.fields(m, MessageOut(out)); }, message);
    return {room.get(), room.get() + out.used()};
}

Status decode_message(std::span<const std::byte> bytes, Message& message, std::string& problem) {
    FieldReader in(bytes);
    const auto magic = in.value<std::uint32_t>();
    const auto version = in.value<std::uint16_t>();
    const auto kind = in.value<std::uint16_t>();
    if (in.ok() && magic == other_order_magic) {
        problem = "the other side has another byte order; little-endian is accepted";
        return Status::version;
    }
    if (!in.ok() || magic != message_magic || bytes.size() > max_message_bytes) {
        problem = fmt::format("{} bytes that are no offpath message", bytes.size());
        return Status::protocol;
    }
    if (version != protocol_version) {
        problem = fmt::format(
            "it speaks protocol version {}, this side version {}: install one version of offpath on both",
            version, protocol_version);
        return Status::version;
    }
    Message decoded;
    const Status status = read_any_message(kind, in, decoded, problem);
    if (status == Status::protocol)
        problem = fmt::format("message of kind {} and {} bytes: {}", kind, bytes.size(), problem);
    if (status == Status::ok) message = std::move(decoded);
    return status;
}

}  // namespace offpath::control
