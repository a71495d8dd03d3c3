#include "control/messages.h"

#include "base/field_codec.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::control {
namespace {

constexpr std::uint32_t magic = 0x4d50464f;  // "OFPM"
constexpr std::uint32_t other_order_magic = 0x4f46504d;
constexpr std::uint32_t byte_order_mark = 0x01020304;
constexpr std::uint8_t word_bytes = 8;
constexpr std::size_t max_text = 512;  // longer texts for people are cut to this length

// A kind is the position in the variant, counted from 1; a test pins the kinds.
constexpr std::uint16_t kind_of(std::size_t index) {
    return static_cast<std::uint16_t>(index + 1);
}

class BodyWriter {
  public:
    explicit BodyWriter(FieldWriter& writer) : out(writer) {}
    void operator()(const Hello& m) const {
        out.value(m.job_high);
        out.value(m.job_low);
        out.value(m.job_rank);
        out.value(m.job_size);
        out.value(m.pid);
        out.value(static_cast<std::uint8_t>(m.back_end));
        out.value(m.probe_address);
        out.value(m.probe_value);
        out.bytes(m.fabric);
        out.value(static_cast<std::uint8_t>(m.purpose));
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
        out.blob(m.direct);
        out.bytes(m.direct_secret);
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
    void operator()(const Challenge& m) const {
        machine();
        out.bytes(m.nonce);
    }
    void operator()(const RemoteHello& m) const {
        machine();
        (*this)(m.hello);
        out.value(m.issued);
        out.bytes(m.nonce);
        out.blob(m.link);
        out.bytes(m.mac);
    }
    void operator()(const RemoteWelcome& m) const {
        (*this)(m.welcome);
        out.value(m.token);
        out.value(static_cast<std::uint8_t>(m.imports));
        out.blob(m.link);
        out.bytes(m.mac);
    }
    void operator()(const KeepAlive&) const {}
    void operator()(const RegisterExported& m) const {
        out.value(m.id);
        out.value(m.address);
        out.value(m.bytes);
        out.blob(m.blob);
    }
    void operator()(const LoadKernel& m) const {
        out.value(m.id);
        out.text(m.path);
        out.text(m.symbol);
        out.value(m.stream);
        out.value(m.seconds);
    }
    void operator()(const KernelReply& m) const {
        out.value(m.id);
        out.value(static_cast<std::int32_t>(m.status));
        out.text(m.text.substr(0, max_text));
    }
    void operator()(const DirectCall& m) const {
        machine();
        out.blob(m.address);
    }
    void operator()(const DirectProof& m) const {
        out.bytes(m.challenge);
        out.bytes(m.nonce);
        out.value(m.job_high);
        out.value(m.job_low);
        out.value(m.rank);
        out.value(m.target);
        out.bytes(m.mac);
    }
    void operator()(const DirectWelcome& m) const {
        out.value(m.token);
        out.bytes(m.mac);
    }
    void operator()(const TargetWelcome& m) const {
        out.text(m.node.substr(0, max_text));
        out.text(m.architecture.substr(0, max_text));
        out.value(m.cpus);
        out.value(static_cast<std::uint8_t>(m.reads_program));
        out.bytes(m.mac);
    }
    void operator()(const KernelText& m) const {
        out.value(static_cast<std::uint8_t>(m.kind));
        out.text(m.text.substr(0, max_kernel_text_bytes));
    }
    void operator()(const KernelTextsTaken& m) const { out.value(m.count); }
    void operator()(const KernelTextsAsked& m) const { out.value(m.number); }

  private:
    FieldWriter& out;
    void machine() const {
        out.value(byte_order_mark);
        out.value(word_bytes);
    }
};

// Reads the final status that a Refusal or a RegionReply carries.
bool read_status(FieldReader& in, Status& status) {
    return status_of(in.value<std::int32_t>(), status);
}

bool read_flag(FieldReader& in, bool& flag) {
    const auto value = in.value<std::uint8_t>();
    flag = value == 1;
    return value <= 1;
}

template <std::size_t size>
void read_array(FieldReader& in, std::array<std::byte, size>& to) {
    const auto bytes = in.take(size);
    std::copy(bytes.begin(), bytes.end(), to.begin());
}

void read_blob(FieldReader& in, std::size_t limit, std::vector<std::byte>& to) {
    const auto bytes = in.blob(limit);
    to.assign(bytes.begin(), bytes.end());
}

// The reader trusts nothing: it checks each field's value, not only that the field is present.
class BodyReader {
  public:
    BodyReader(FieldReader& reader, std::string& text) : in(reader), problem(text) {}

    Status operator()(Hello& m) {
        m.job_high = in.value<std::uint64_t>();
        m.job_low = in.value<std::uint64_t>();
        m.job_rank = in.value<std::uint32_t>();
        m.job_size = in.value<std::uint32_t>();
        m.pid = in.value<std::uint32_t>();
        const auto back_end = in.value<std::uint8_t>();
        m.probe_address = in.value<std::uint64_t>();
        m.probe_value = in.value<std::uint64_t>();
        read_array(in, m.fabric);
        const auto purpose = in.value<std::uint8_t>();
        if (purpose > 2) return wrong("hello: unknown purpose {}; 0 to 2 are accepted", purpose);
        m.purpose = static_cast<Purpose>(purpose);
        if (in.ok() && (m.job_size == 0 || m.job_size > max_job_size || m.job_rank >= m.job_size))
            return wrong("hello: rank {} of a job of {} ranks; at most {} ranks are accepted", m.job_rank,
                         m.job_size, max_job_size);
        if (back_end > 4 || back_end == 1)
            return wrong("hello: unknown back end {}; 0, 2, 3 and 4 are accepted", back_end);
        m.back_end = static_cast<BackEndRequest>(back_end);
        return Status::ok;
    }
    Status operator()(Welcome& m) {
        m.proxy = in.value<std::uint64_t>();
        m.proxy_index = in.value<std::uint32_t>();
        m.back_end = in.value<std::uint8_t>();
        m.progress = in.value<std::uint8_t>();
        m.daemon_pid = in.value<std::uint32_t>();
        const bool good = read_flag(in, m.staging);
        m.node = in.text(max_text);
        m.fabric = in.text(max_text);
        read_blob(in, max_address_bytes, m.address);
        read_blob(in, max_direct_address_bytes, m.direct);
        read_array(in, m.direct_secret);
        return good ? Status::ok : wrong("welcome: the flag for staging is neither 0 nor 1");
    }
    Status operator()(Refusal& m) {
        if (!read_status(in, m.status)) return wrong("refusal: unknown status");
        m.text = in.text(max_text);
        return Status::ok;
    }
    Status operator()(RegisterRegion& m) {
        read_region(m);
        return check_region(m);
    }
    Status operator()(RegionReply& m) {
        m.id = in.value<std::uint64_t>();
        if (!read_status(in, m.status)) return wrong("region reply: unknown status");
        m.back_end = in.value<std::uint8_t>();
        m.progress = in.value<std::uint8_t>();
        return Status::ok;
    }
    Status operator()(RevokeRegion& m) {
        m.id = in.value<std::uint64_t>();
        return Status::ok;
    }
    Status operator()(Goodbye&) { return Status::ok; }
    Status operator()(Challenge& m) {
        if (Status status = same_machine(); status != Status::ok) return status;
        read_array(in, m.nonce);
        return Status::ok;
    }
    Status operator()(RemoteHello& m) {
        if (Status status = same_machine(); status != Status::ok) return status;
        if (Status status = (*this)(m.hello); status != Status::ok) return status;
        m.issued = in.value<std::uint64_t>();
        read_array(in, m.nonce);
        read_blob(in, max_link_address_bytes, m.link);
        read_array(in, m.mac);
        return Status::ok;
    }
    Status operator()(RemoteWelcome& m) {
        if (Status status = (*this)(m.welcome); status != Status::ok) return status;
        m.token = in.value<std::uint64_t>();
        const bool good = read_flag(in, m.imports);
        read_blob(in, max_link_address_bytes, m.link);
        read_array(in, m.mac);
        return good ? Status::ok : wrong("welcome: the flag for imports is neither 0 nor 1");
    }
    Status operator()(KeepAlive&) { return Status::ok; }
    Status operator()(RegisterExported& m) {
        read_region(m);
        read_blob(in, max_blob_bytes, m.blob);
        return check_region(m);
    }
    Status operator()(LoadKernel& m) {
        m.id = in.value<std::uint64_t>();
        m.path = in.text(max_path_bytes);
        m.symbol = in.text(max_symbol_bytes);
        m.stream = in.value<std::uint32_t>();
        m.seconds = in.value<std::uint32_t>();
        if (in.ok() && m.stream >= max_kernel_streams)
            return wrong("a kernel of stream {}; {} streams are accepted", m.stream, max_kernel_streams);
        const bool named = m.id != 0 && !m.path.empty() && !m.symbol.empty();
        if (in.ok() && (!named || (m.path + m.symbol).find('\0') != std::string::npos))
            return wrong("a kernel without number, path or symbol");
        return Status::ok;
    }
    Status operator()(KernelReply& m) {
        m.id = in.value<std::uint64_t>();
        if (!read_status(in, m.status)) return wrong("kernel reply: unknown status");
        m.text = in.text(max_text);
        return Status::ok;
    }
    Status operator()(DirectCall& m) {
        if (Status status = same_machine(); status != Status::ok) return status;
        read_blob(in, max_direct_address_bytes, m.address);
        return Status::ok;
    }
    Status operator()(DirectProof& m) {
        read_array(in, m.challenge);
        read_array(in, m.nonce);
        m.job_high = in.value<std::uint64_t>();
        m.job_low = in.value<std::uint64_t>();
        m.rank = in.value<std::uint32_t>();
        m.target = in.value<std::uint32_t>();
        read_array(in, m.mac);
        return Status::ok;
    }
    Status operator()(DirectWelcome& m) {
        m.token = in.value<std::uint64_t>();
        read_array(in, m.mac);
        return Status::ok;
    }
    Status operator()(TargetWelcome& m) {
        m.node = in.text(max_text);
        m.architecture = in.text(max_text);
        m.cpus = in.value<std::uint32_t>();
        const bool good = read_flag(in, m.reads_program);
        read_array(in, m.mac);
        return good ? Status::ok : wrong("target welcome: the flag for reading is neither 0 nor 1");
    }
    Status operator()(KernelText& m) {
        const auto kind = in.value<std::uint8_t>();
        m.text = in.text(max_kernel_text_bytes);
        if (in.ok() && (kind < 1 || kind > 3))
            return wrong("text of kernels: unknown kind {}; 1 to 3 are accepted", kind);
        m.kind = static_cast<KernelTextKind>(kind);
        return Status::ok;
    }
    Status operator()(KernelTextsTaken& m) {
        m.count = in.value<std::uint64_t>();
        return Status::ok;
    }
    Status operator()(KernelTextsAsked& m) {
        m.number = in.value<std::uint64_t>();
        return Status::ok;
    }

  private:
    template <typename... Args>
    Status wrong(fmt::format_string<Args...> text, Args&&... args) {
        problem = fmt::format(text, std::forward<Args>(args)...);
        return Status::protocol;
    }
    template <typename Region>
    void read_region(Region& m) {
        m.id = in.value<std::uint64_t>();
        m.address = in.value<std::uint64_t>();
        m.bytes = in.value<std::uint64_t>();
    }
    template <typename Region>
    Status check_region(const Region& m) {
        constexpr std::uint64_t limit = std::uint64_t{1} << 47;
        if (in.ok() && (m.id == 0 || m.bytes == 0 || m.bytes > limit || m.address > UINT64_MAX - m.bytes))
            return wrong("region {}: {} bytes at {:#x} is out of range", m.id, m.bytes, m.address);
        return Status::ok;
    }
    Status same_machine() {
        const auto mark = in.value<std::uint32_t>();
        const auto word = in.value<std::uint8_t>();
        if (!in.ok()) return Status::ok;  // too short; reported later
        if (mark != byte_order_mark) {
            problem = fmt::format(
                "the other side has another byte order (its mark reads {:08x}); little-endian is accepted",
                mark);
            return Status::version;
        }
        if (word != word_bytes) {
            problem = fmt::format("the other side's machine words have {} bits; {} are accepted", word * 8,
                                  word_bytes * 8);
            return Status::version;
        }
        return Status::ok;
    }

    FieldReader& in;
    std::string& problem;
};

template <std::size_t index = 0>
Status read_body(std::uint16_t kind, FieldReader& in, Message& message, std::string& problem) {
    if constexpr (index == std::variant_size_v<Message>) {
        problem = fmt::format("unknown message kind {}; 1 to {} are accepted", kind, index);
        return Status::protocol;
    } else {
        if (kind != kind_of(index)) return read_body<index + 1>(kind, in, message, problem);
        return BodyReader(in, problem)(message.emplace<index>());
    }
}

}  // namespace

std::vector<std::byte> encode_message(const Message& message) {
    std::vector<std::byte> bytes(max_message_bytes);
    FieldWriter out(bytes);
    out.value(magic);
    out.value(protocol_version);
    out.value(kind_of(message.index()));
    std::visit(BodyWriter(out), message);
    bytes.resize(out.used());
    return bytes;
}

Status decode_message(std::span<const std::byte> bytes, Message& message, std::string& problem) {
    FieldReader in(bytes);
    const auto its_magic = in.value<std::uint32_t>();
    const auto version = in.value<std::uint16_t>();
    const auto kind = in.value<std::uint16_t>();
    if (in.ok() && its_magic == other_order_magic) {
        problem = "the other side has another byte order; little-endian is accepted";
        return Status::version;
    }
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
