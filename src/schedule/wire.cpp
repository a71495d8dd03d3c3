#include "schedule/wire.h"

#include "schedule/fields.h"
#include "schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace offpath::schedule {
namespace {

constexpr std::array<std::byte, 4> magic{std::byte{'O'}, std::byte{'F'}, std::byte{'P'}, std::byte{'S'}};
constexpr std::size_t header_bytes = 10;
constexpr unsigned same_bytes_flag = 0x10, dependency_shift = 5, many_dependencies = 3;
constexpr std::size_t least_op_bytes = 2, least_slot_bytes = 2;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit)
            value = (value >> 1) ^ ((value & 1) ? 0xEDB88320u : 0u);
        table[i] = value;
    }
    return table;
}

// CRC-32 of ISO 3309. It detects every error burst of up to 32 bits.
std::uint32_t crc32(std::span<const std::byte> bytes) {
    static constexpr auto table = make_crc_table();
    std::uint32_t crc = ~0u;
    for (std::byte byte : bytes)
        crc = table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

class Writer {
  public:
    void byte(unsigned value) { bytes_.push_back(static_cast<std::byte>(value)); }
    void number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7)
            byte(static_cast<unsigned>(value & 0x7F) | 0x80);
        byte(static_cast<unsigned>(value));
    }
    void place(const BufferRef& ref) {
        number(ref.slot);
        number(ref.offset);
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

// Reads until the first error. After it, every read gives zero and failed() stays true.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    unsigned byte() {
        if (at_ == bytes_.size()) return fail("it ends too early");
        return std::to_integer<unsigned>(bytes_[at_++]);
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const unsigned next = byte();
            value |= static_cast<std::uint64_t>(next & 0x7F) << shift;
            if (next & 0x80) continue;
            if ((next == 0 && shift > 0) || (shift == 63 && next > 1)) break;
            return failed() ? 0 : value;
        }
        return fail("a number is not in its shortest form or has more than 64 bits");
    }
    std::uint32_t number32() {
        const std::uint64_t value = number();
        return value > UINT32_MAX ? fail("a number has more than 32 bits")
                                  : static_cast<std::uint32_t>(value);
    }
    BufferRef place() {
        const std::uint32_t slot = number32();
        return {slot, number()};
    }
    std::size_t left() const { return bytes_.size() - at_; }
    bool failed() const { return problem_ != nullptr; }
    const char* problem() const { return problem_; }
    unsigned fail(const char* problem) {
        if (!failed()) problem_ = problem;
        at_ = bytes_.size();
        return 0;
    }

  private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    const char* problem_ = nullptr;
};

void write_call(Writer& out, const KernelCall& call) {
    out.number(call.kernel);
    out.number(call.arguments.size());
    for (std::byte byte : call.arguments)
        out.byte(std::to_integer<unsigned>(byte));
    out.number(call.buffers.size());
    for (const CallBuffer& buffer : call.buffers) {
        out.place(buffer.place);
        out.number(buffer.bytes);
        out.byte(static_cast<unsigned>(buffer.access));
    }
}

// Checks the limits before it allocates memory. validate() checks the rest.
KernelCall read_call(Reader& in) {
    KernelCall call;
    call.kernel = in.number();
    const std::uint64_t argument_bytes = in.number();
    if (argument_bytes > max_call_arguments) in.fail("a kernel has too many bytes of arguments");
    for (std::uint64_t i = 0; i < argument_bytes && !in.failed(); ++i)
        call.arguments.push_back(static_cast<std::byte>(in.byte()));
    const std::uint64_t buffers = in.number();
    if (buffers > max_call_buffers) in.fail("a kernel has too many buffers");
    for (std::uint64_t i = 0; i < buffers && !in.failed(); ++i) {
        CallBuffer buffer;
        buffer.place = in.place();
        buffer.bytes = in.number();
        buffer.access = static_cast<Access>(in.byte());
        call.buffers.push_back(buffer);
    }
    return call;
}

void write_op(Writer& out, const Schedule& schedule, std::span<const OpId> before, OpId id,
              std::uint64_t& last_bytes) {
    const Op& op = schedule.ops()[id];
    const Fields fields = fields_of(op.kind);
    const bool same_bytes = fields.bytes && op.bytes == last_bytes;
    const auto code = static_cast<unsigned>(std::min<std::size_t>(before.size(), many_dependencies));
    out.byte(static_cast<unsigned>(op.kind) | (same_bytes ? same_bytes_flag : 0) | code << dependency_shift);
    if (code == many_dependencies) out.number(before.size() - many_dependencies);
    if (fields.peer) out.number(op.peer);
    if (fields.call)
        write_call(out, schedule.calls()[op.tag]);
    else if (fields.tag)
        out.number(op.tag);
    if (fields.reduction) {
        out.byte(static_cast<unsigned>(op.type));
        out.byte(static_cast<unsigned>(op.reduction));
    }
    if (fields.src) out.place(op.src);
    if (fields.dst) out.place(op.dst);
    if (fields.bytes && !same_bytes) out.number(op.bytes);
    if (fields.bytes) last_bytes = op.bytes;
    for (OpId other : before)
        out.number(zigzag(static_cast<std::int64_t>(id) - static_cast<std::int64_t>(other)));
}

Op read_op(Reader& in, std::uint64_t& last_bytes, std::uint64_t& dependencies,
           std::vector<KernelCall>& calls) {
    const unsigned head = in.byte();
    Op op{.kind = static_cast<OpKind>(head & 0x0F)};
    const Fields fields = fields_of(op.kind);
    const bool same_bytes = (head & same_bytes_flag) != 0;
    if (!fields.known || (head & 0x80) != 0 || (same_bytes && !fields.bytes)) {
        in.fail("an op has an unknown head");
        return op;
    }
    dependencies = head >> dependency_shift & many_dependencies;
    if (dependencies == many_dependencies) dependencies += std::min<std::uint64_t>(in.number(), max_ops);
    if (fields.peer) op.peer = in.number32();
    if (fields.call) {
        op.tag = calls.size();
        calls.push_back(read_call(in));
    } else if (fields.tag) {
        op.tag = in.number();
    }
    if (fields.reduction) {
        op.type = static_cast<DataType>(in.byte());
        op.reduction = static_cast<Reduction>(in.byte());
    }
    if (fields.src) op.src = in.place();
    if (fields.dst) op.dst = in.place();
    if (fields.bytes) {
        op.bytes = same_bytes ? last_bytes : in.number();
        if (!same_bytes && op.bytes == last_bytes) in.fail("an op repeats the size of the one before");
        last_bytes = op.bytes;
    }
    return op;
}

Schedule read_body(Reader& in) {
    const std::uint32_t rank = in.number32(), team_size = in.number32();
    const std::uint32_t slot_count = in.number32(), op_count = in.number32();
    if (slot_count > max_slots || op_count > max_ops ||
        slot_count * least_slot_bytes + op_count * least_op_bytes > in.left())
        in.fail("it announces more slots and ops than it holds");
    if (in.failed()) return {};

    std::vector<Slot> slots(slot_count);
    for (Slot& slot : slots) {
        slot.kind = static_cast<SlotKind>(in.byte());
        slot.bytes = in.number();
    }
    std::vector<Op> ops(op_count);
    std::vector<KernelCall> calls;
    std::vector<std::pair<OpId, OpId>> edges;
    std::uint64_t last_bytes = 0;
    for (OpId id = 0; id < op_count && !in.failed(); ++id) {
        std::uint64_t dependencies = 0;
        ops[id] = read_op(in, last_bytes, dependencies, calls);
        std::int64_t last = -1;
        for (std::uint64_t i = 0; i < dependencies && !in.failed(); ++i) {
            const std::uint64_t coded = std::min<std::uint64_t>(in.number(), 4 * std::uint64_t{max_ops});
            const auto half = static_cast<std::int64_t>(coded >> 1);
            const std::int64_t before = id + (coded & 1 ? half + 1 : -half);
            if (coded == 0 || before <= last || before >= op_count) {
                in.fail("a dependency names itself, no op, or is out of order");
                break;
            }
            edges.emplace_back(static_cast<OpId>(before), id);
            last = before;
        }
    }
    if (!in.failed() && in.left() > 0) in.fail("there is something behind the last op");
    if (in.failed()) return {};
    return Schedule(rank, team_size, std::move(slots), std::move(ops), std::move(edges), std::move(calls));
}

std::uint32_t read_u32(std::span<const std::byte> bytes) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
        value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
    return value;
}

}  // namespace

std::vector<std::byte> seal(std::span<const std::byte> body) {
    std::vector<std::byte> bytes(magic.begin(), magic.end());
    bytes.reserve(header_bytes + body.size());
    const auto append = [&](std::uint32_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i)
            bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    };
    append(wire_version, 2);
    append(crc32(body), 4);
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

std::vector<std::byte> encode(const Schedule& schedule) {
    std::vector<std::vector<OpId>> before(schedule.ops().size());
    for (OpId id = 0; id < schedule.ops().size(); ++id)
        for (OpId after : schedule.successors(id))
            before[after].push_back(id);

    Writer out;
    out.number(schedule.rank());
    out.number(schedule.team_size());
    out.number(schedule.slots().size());
    out.number(schedule.ops().size());
    for (const Slot& slot : schedule.slots()) {
        out.byte(static_cast<unsigned>(slot.kind));
        out.number(slot.bytes);
    }
    std::uint64_t last_bytes = 0;
    for (OpId id = 0; id < schedule.ops().size(); ++id)
        write_op(out, schedule, before[id], id, last_bytes);
    return seal(out.bytes());
}

Status decode(std::span<const std::byte> bytes, Schedule& schedule, std::string& problem) {
    if (bytes.size() < header_bytes || !std::equal(magic.begin(), magic.end(), bytes.begin())) {
        problem = fmt::format("these {} bytes are not an encoded schedule", bytes.size());
        return Status::protocol;
    }
    const auto version = std::to_integer<unsigned>(bytes[4]) | std::to_integer<unsigned>(bytes[5]) << 8;
    if (version != wire_version) {
        problem = fmt::format("a schedule of wire version {}, this build reads {}", version, wire_version);
        return Status::version;
    }
    const auto body = bytes.subspan(header_bytes);
    if (read_u32(bytes.subspan(6)) != crc32(body)) {
        problem = "a damaged schedule: its checksum does not fit";
        return Status::protocol;
    }
    Reader in(body);
    Schedule read = read_body(in);
    if (in.failed()) {
        problem = fmt::format("a malformed schedule: {}", in.problem());
        return Status::protocol;
    }
    if (validate(read, problem) != Status::ok) {
        problem = "an invalid schedule: " + problem;
        return Status::protocol;
    }
    schedule = std::move(read);
    return Status::ok;
}

}  // namespace offpath::schedule
