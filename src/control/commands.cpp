#include "control/commands.h"

#include "control/messages.h"

#include <fmt/format.h>

namespace offpath::control {
namespace {

constexpr std::uint32_t fixed_range_bytes = 24;
static_assert(sizeof(BufferRange) == fixed_range_bytes);

struct BodyBytes {
    template <typename C>
        requires(requires { C::kind; })
    std::size_t operator()(const C& c) const {
        return body_bytes(c);
    }
    std::size_t operator()(const AddProxy& c) const { return 8 + 4 + c.address.size(); }
    std::size_t operator()(const Ranks& c) const { return 4 + 4 + c.proxies.bytes().size(); }
    std::size_t operator()(const CreateTeam& c) const { return 8 + 12 + 4 + c.ranks.bytes().size(); }
    std::size_t operator()(const DestroyTeam&) const { return 8; }
    std::size_t operator()(const SchedulePart& c) const { return 24 + 4 + c.bytes.size(); }
    std::size_t operator()(const ForgetSchedule&) const { return 8; }
    std::size_t operator()(const Start& c) const { return 16 + 16 + 4 + c.ranges.bytes().size(); }
    std::size_t operator()(const BasicSend&) const { return 8 + 12 + fixed_range_bytes; }
    std::size_t operator()(const BasicRecv&) const { return 8 + 12 + fixed_range_bytes; }
    std::size_t operator()(const KeyedSend&) const { return 8 + 8 + sizeof(MessageKey) + fixed_range_bytes; }
    std::size_t operator()(const KeyedRecv&) const { return 8 + 8 + sizeof(MessageKey) + fixed_range_bytes; }
    std::size_t operator()(const KeyedCancel&) const { return 8 + 4 + sizeof(MessageKey); }
    std::size_t operator()(const KeyedStore&) const { return 8 + 4 + sizeof(MessageKey); }
};

struct BodyWriter {
    FieldWriter& out;
    template <typename C>
        requires(requires { C::kind; })
    void operator()(const C& c) const {
        write_body(out, c);
    }
    void operator()(const AddProxy& c) const {
        out.value(c.proxy);
        out.blob(c.address);
    }
    void operator()(const Ranks& c) const {
        out.value(c.first);
        out.blob(c.proxies.bytes());
    }
    void operator()(const CreateTeam& c) const {
        out.value(c.team);
        out.value(c.rank);
        out.value(c.size);
        out.value(c.first);
        out.blob(c.ranks.bytes());
    }
    void operator()(const DestroyTeam& c) const { out.value(c.team); }
    void operator()(const SchedulePart& c) const {
        out.value(c.schedule);
        out.value(c.total);
        out.value(c.offset);
        out.blob(c.bytes);
    }
    void operator()(const ForgetSchedule& c) const { out.value(c.schedule); }
    void operator()(const Start& c) const {
        out.value(c.schedule);
        out.value(c.team);
        out.value(c.sequence);
        out.value(c.completion);
        out.value(c.buffers);
        out.value(c.first);
        out.blob(c.ranges.bytes());
    }
    template <typename Basic>
    void basic(const Basic& c) const {
        out.value(c.team);
        out.value(c.peer);
        out.value(c.tag);
        out.value(c.completion);
        out.value(c.range);
    }
    void operator()(const BasicSend& c) const { basic(c); }
    void operator()(const BasicRecv& c) const { basic(c); }
    template <typename Keyed>
    void keyed(const Keyed& c) const {
        out.value(c.team);
        out.value(c.peer);
        out.value(c.completion);
        out.value(c.key);
        out.value(c.range);
    }
    void operator()(const KeyedSend& c) const { keyed(c); }
    void operator()(const KeyedRecv& c) const { keyed(c); }
    template <typename Named>
    void named(const Named& c) const {
        out.value(c.team);
        out.value(c.peer);
        out.value(c.key);
    }
    void operator()(const KeyedCancel& c) const { named(c); }
    void operator()(const KeyedStore& c) const { named(c); }
};

template <typename T>
bool read_packed(FieldReader& in, Packed<T>& packed) {
    const auto bytes = in.blob(max_record_bytes);
    packed = Packed<T>(bytes);
    return bytes.size() % sizeof(T) == 0;
}

template <typename Basic>
Basic read_basic(FieldReader& in) {
    Basic c;
    c.team = in.value<std::uint64_t>();
    c.peer = in.value<std::uint32_t>();
    c.tag = in.value<std::uint32_t>();
    c.completion = in.value<std::uint32_t>();
    c.range = in.value<BufferRange>();
    return c;
}

template <typename Keyed>
Keyed read_message(FieldReader& in) {
    Keyed c;
    c.team = in.value<std::uint64_t>();
    c.peer = in.value<std::uint32_t>();
    c.completion = in.value<std::uint32_t>();
    c.key = in.value<MessageKey>();
    c.range = in.value<BufferRange>();
    return c;
}

template <typename C>
const char* read_as(FieldReader& in, Command& command) {
    C c;
    const char* wrong = read_body(in, c);
    if (wrong == nullptr) command = c;
    return wrong;
}

// Those with a number of their own, and else by their place in the variant.
std::uint16_t kind_of(const Command& command) {
    return std::visit(
        [&](const auto& c) {
            using C = std::decay_t<decltype(c)>;
            if constexpr (requires { C::kind; }) return C::kind;
            return static_cast<std::uint16_t>(command.index() + 1);
        },
        command);
}

template <typename Named>
Named read_named_message(FieldReader& in) {
    Named c;
    c.team = in.value<std::uint64_t>();
    c.peer = in.value<std::uint32_t>();
    c.key = in.value<MessageKey>();
    return c;
}

bool part_fits(std::uint64_t first, std::uint64_t count, std::uint64_t total) {
    return first <= total && count <= total - first;
}

// nullptr: fine; else what is wrong.
const char* read_body(std::uint16_t kind, FieldReader& in, Command& command) {
    switch (kind) {
        case 1: {
            AddProxy c;
            c.proxy = in.value<std::uint64_t>();
            c.address = in.blob(max_address_bytes);
            if (c.proxy == 0 || c.address.empty()) return "a proxy without id or address";
            command = c;
            return nullptr;
        }
        case 2: {
            Ranks c;
            c.first = in.value<std::uint32_t>();
            if (!read_packed(in, c.proxies) || !part_fits(c.first, c.proxies.size(), max_job_size))
                return "a table of ranks that is too long";
            command = c;
            return nullptr;
        }
        case 3: {
            CreateTeam c;
            c.team = in.value<std::uint64_t>();
            c.rank = in.value<std::uint32_t>();
            c.size = in.value<std::uint32_t>();
            c.first = in.value<std::uint32_t>();
            if (!read_packed(in, c.ranks) || c.size == 0 || c.size > max_job_size || c.rank >= c.size ||
                c.ranks.size() == 0 || !part_fits(c.first, c.ranks.size(), c.size))
                return "a team whose size, rank or list is out of range";
            command = c;
            return nullptr;
        }
        case 4:
            command = DestroyTeam{in.value<std::uint64_t>()};
            return nullptr;
        case 5: {
            SchedulePart c;
            c.schedule = in.value<std::uint64_t>();
            c.total = in.value<std::uint64_t>();
            c.offset = in.value<std::uint64_t>();
            c.bytes = in.blob(max_record_bytes);
            if (c.total > max_schedule_bytes || c.bytes.empty() ||
                !part_fits(c.offset, c.bytes.size(), c.total))
                return "a schedule part outside its schedule";
            command = c;
            return nullptr;
        }
        case 6:
            command = ForgetSchedule{in.value<std::uint64_t>()};
            return nullptr;
        case 7: {
            Start c;
            c.schedule = in.value<std::uint64_t>();
            c.team = in.value<std::uint64_t>();
            c.sequence = in.value<std::uint32_t>();
            c.completion = in.value<std::uint32_t>();
            c.buffers = in.value<std::uint32_t>();
            c.first = in.value<std::uint32_t>();
            if (!read_packed(in, c.ranges) || c.buffers > max_buffers ||
                !part_fits(c.first, c.ranges.size(), c.buffers) || (c.ranges.size() == 0 && c.buffers != 0))
                return "a start with a wrong list of buffers";
            command = c;
            return nullptr;
        }
        case 8:
            command = read_basic<BasicSend>(in);
            return nullptr;
        case 9:
            command = read_basic<BasicRecv>(in);
            return nullptr;
        case 10:
            command = read_message<KeyedSend>(in);
            return nullptr;
        case 11:
            command = read_message<KeyedRecv>(in);
            return nullptr;
        case 12:
            command = read_named_message<KeyedCancel>(in);
            return nullptr;
        case 13:
            command = read_named_message<KeyedStore>(in);
            return nullptr;
        case CreateWindow::kind:
            return read_as<CreateWindow>(in, command);
        case DestroyWindow::kind:
            return read_as<DestroyWindow>(in, command);
        case AttachWindow::kind:
            return read_as<AttachWindow>(in, command);
        case DetachWindow::kind:
            return read_as<DetachWindow>(in, command);
        case WindowOperation::kind:
            return read_as<WindowOperation>(in, command);
        case FlushWindow::kind:
            return read_as<FlushWindow>(in, command);
        case Compute::kind:
            return read_as<Compute>(in, command);
        case UnloadKernel::kind:
            return read_as<UnloadKernel>(in, command);
        default:
            return "an unknown kind";
    }
}

}  // namespace

std::size_t record_bytes(const Command& command) {
    return record_header_bytes + std::visit(BodyBytes{}, command);
}

void encode_command(const Command& command, std::span<std::byte> room) {
    FieldWriter out(room);
    out.value(static_cast<std::uint32_t>(record_bytes(command)));
    out.value(kind_of(command));
    out.value(std::uint16_t{0});
    std::visit(BodyWriter{out}, command);
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
        wrong = read_body(kind, in, decoded);
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
