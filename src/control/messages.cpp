#include "control/messages.h"

#include "control/codec.h"

#include <fmt/format.h>

namespace offpath::control {
namespace {

constexpr std::uint32_t magic = 0x4d50464f;  // "OFPM"
constexpr std::size_t max_text = 512;        // of texts for people, which are cut here

// Kinds are the places in the variant, counted from 1; a test pins them.
constexpr std::uint16_t kind_of(std::size_t index) {
    return static_cast<std::uint16_t>(index + 1);
}

struct BodyWriter {
    FieldWriter& out;
    void operator()(const Hello& m) const {
        out.value(m.job_high);
        out.value(m.job_low);
        out.value(m.job_rank);
        out.value(m.job_size);
        out.value(m.pid);
        out.value(static_cast<std::uint8_t>(m.back_end));
        out.value(m.probe_address);
        out.value(m.probe_value);
    }
    void operator()(const Welcome& m) const {
        out.value(m.proxy);
        out.value(m.proxy_index);
        out.value(m.back_end);
        out.value(m.progress);
        out.value(m.daemon_pid);
        out.value(static_cast<std::uint8_t>(m.staging));
        out.text(m.node.substr(0, max_text));
        out.text(m.fabric.substr(0, max_text));
        out.blob(m.address);
    }
    void operator()(const Refusal& m) const {
        out.value(static_cast<std::int32_t>(m.status));
        out.text(m.text.substr(0, max_text));
    }
    void operator()(const RegisterRegion& m) const {
        out.value(m.id);
        out.value(m.address);
        out.value(m.bytes);
    }
    void operator()(const RegionReply& m) const {
        out.value(m.id);
        out.value(static_cast<std::int32_t>(m.status));
        out.value(m.back_end);
        out.value(m.progress);
    }
    void operator()(const RevokeRegion& m) const { out.value(m.id); }
    void operator()(const Goodbye&) const {}
};

// A final status, as a Refusal or a RegionReply carries it.
bool read_status(FieldReader& in, Status& status) {
    const auto value = in.value<std::int32_t>();
    if (value > 0 || value < OFFPATH_ERR_SYSTEM) return false;
    status = static_cast<Status>(value);
    return true;
}

Status read_body(std::uint16_t kind, FieldReader& in, Message& message, std::string& problem) {
    switch (kind) {
        case 1: {
            Hello m;
            m.job_high = in.value<std::uint64_t>();
            m.job_low = in.value<std::uint64_t>();
            m.job_rank = in.value<std::uint32_t>();
            m.job_size = in.value<std::uint32_t>();
            m.pid = in.value<std::uint32_t>();
            const auto back_end = in.value<std::uint8_t>();
            m.probe_address = in.value<std::uint64_t>();
            m.probe_value = in.value<std::uint64_t>();
            if (in.ok() && (m.job_size == 0 || m.job_size > max_job_size || m.job_rank >= m.job_size)) {
                problem = fmt::format("hello: rank {} of a job of {} ranks; at most {} ranks are accepted",
                                      m.job_rank, m.job_size, max_job_size);
                return Status::protocol;
            }
            if (back_end > 4 || back_end == 1) {
                problem = fmt::format("hello: unknown back end {}; 0, 2, 3 and 4 are accepted", back_end);
                return Status::protocol;
            }
            m.back_end = static_cast<BackEndRequest>(back_end);
            message = m;
            return Status::ok;
        }
        case 2: {
            Welcome m;
            m.proxy = in.value<std::uint64_t>();
            m.proxy_index = in.value<std::uint32_t>();
            m.back_end = in.value<std::uint8_t>();
            m.progress = in.value<std::uint8_t>();
            m.daemon_pid = in.value<std::uint32_t>();
            const auto staging = in.value<std::uint8_t>();
            m.staging = staging == 1;
            m.node = in.text(max_text);
            m.fabric = in.text(max_text);
            const auto address = in.blob(max_address_bytes);
            m.address.assign(address.begin(), address.end());
            if (staging > 1) {
                problem = fmt::format("welcome: staging is {}; 0 or 1 is accepted", staging);
                return Status::protocol;
            }
            message = std::move(m);
            return Status::ok;
        }
        case 3: {
            Refusal m;
            if (!read_status(in, m.status)) {
                problem = "refusal: unknown status";
                return Status::protocol;
            }
            m.text = in.text(max_text);
            message = std::move(m);
            return Status::ok;
        }
        case 4: {
            RegisterRegion m;
            m.id = in.value<std::uint64_t>();
            m.address = in.value<std::uint64_t>();
            m.bytes = in.value<std::uint64_t>();
            constexpr std::uint64_t limit = std::uint64_t{1} << 47;
            if (in.ok() &&
                (m.id == 0 || m.bytes == 0 || m.bytes > limit || m.address > UINT64_MAX - m.bytes)) {
                problem =
                    fmt::format("region {}: {} bytes at {:#x} is out of range", m.id, m.bytes, m.address);
                return Status::protocol;
            }
            message = m;
            return Status::ok;
        }
        case 5: {
            RegionReply m;
            m.id = in.value<std::uint64_t>();
            if (!read_status(in, m.status)) {
                problem = "region reply: unknown status";
                return Status::protocol;
            }
            m.back_end = in.value<std::uint8_t>();
            m.progress = in.value<std::uint8_t>();
            message = m;
            return Status::ok;
        }
        case 6:
            message = RevokeRegion{in.value<std::uint64_t>()};
            return Status::ok;
        case 7:
            message = Goodbye{};
            return Status::ok;
        default:
            problem = fmt::format("unknown message kind {}; 1 to {} are accepted", kind,
                                  std::variant_size_v<Message>);
            return Status::protocol;
    }
}

}  // namespace

std::vector<std::byte> encode_message(const Message& message) {
    std::vector<std::byte> bytes(max_message_bytes);
    FieldWriter out(bytes);
    out.value(magic);
    out.value(protocol_version);
    out.value(kind_of(message.index()));
    std::visit(BodyWriter{out}, message);
    bytes.resize(out.used());
    return bytes;
}

Status decode_message(std::span<const std::byte> bytes, Message& message, std::string& problem) {
    FieldReader in(bytes);
    const auto its_magic = in.value<std::uint32_t>();
    const auto version = in.value<std::uint16_t>();
    const auto kind = in.value<std::uint16_t>();
    if (!in.ok() || its_magic != magic || bytes.size() > max_message_bytes) {
        problem = fmt::format("{} bytes that are no offpath message", bytes.size());
        return Status::protocol;
    }
    if (version != protocol_version) {
        problem = fmt::format("protocol version {} was spoken; this side speaks version {}", version,
                              protocol_version);
        return Status::version;
    }
    Message decoded;
    if (Status status = read_body(kind, in, decoded, problem); status != Status::ok) return status;
    if (!in.complete()) {
        problem = fmt::format("a message of kind {} with a wrong length ({} bytes)", kind, bytes.size());
        return Status::protocol;
    }
    message = std::move(decoded);
    return Status::ok;
}

}  // namespace offpath::control
