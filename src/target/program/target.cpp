#include "target/program/target.h"

#include "base/codes.h"
#include "base/environment.h"
#include "target/program/connect.h"
#include "target/program/mapped_ranges.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>

namespace offpath::target {
namespace {

constexpr std::size_t batch_bytes = 16 << 10;
constexpr std::uint64_t spin_ns = 100'000;
constexpr std::uint64_t default_patience_s = 8;
constexpr std::uint64_t nothing_to_wait_for = UINT64_MAX;  // instead of the number of a sync

// Whether this thread holds the lock of some target's sending.
thread_local bool sends_here = false;

// Prints each line with the device's name in front.
void print_lines(const std::string& device, int descriptor, const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        out += fmt::format("[{}] ", device);
        out.append(text, at, end - at);
        at = end;
    }
    std::FILE* const file = descriptor == 2 ? stderr : stdout;
    std::fwrite(out.data(), 1, out.size(), file);
    std::fflush(file);
}

std::uint64_t patience_ns() {
    try {
        return environment::number("OFFPATH_TARGET_PATIENCE", default_patience_s) * 1'000'000'000;
    } catch (const std::invalid_argument& problem) {
        std::fprintf(stderr, "offpath: %s\n", with_code(problem.what(), Code::setting).c_str());
        return default_patience_s * 1'000'000'000;
    }
}

std::string text_of(const Answer& answer) {
    return {reinterpret_cast<const char*>(answer.payload.data()), answer.payload.size()};
}

}  // namespace

Status Target::probe(const Place& place, DeviceFacts& facts, std::string& problem) {
    Connection connection;
    const Status status = connect_target(Purpose::probe, place, connection, problem);
    if (status == Status::ok) facts = std::move(connection.facts);
    return status;
}

Status Target::open(const Place& place, std::unique_ptr<Target>& target, std::string& problem) {
    Connection connection;
    const Status status = connect_target(Purpose::serve, place, connection, problem);
    if (status != Status::ok) return status;
    target.reset(new Target(std::move(connection)));
    return Status::ok;
}

Target::Target(Connection connection)
    : facts_(std::move(connection.facts)),
      image_nonce_(connection.image_nonce),
      reads_program_(connection.reads_program),
      line_(std::move(connection.line)),
      answers_(
          *line_,
          [this](int descriptor, const std::string& text) { print_lines(facts_.node, descriptor, text); },
          spin_ns, patience_ns(), !facts_.remote) {}

Target::~Target() {
    std::string ignored;
    (void)finish(send_sync(new_stream(), false), true, ignored);  // waits for what functions have printed
    line_->hang_up();
}

template <typename Body>
Status Target::send(std::uint64_t number, std::uint32_t stream, const Body& body,
                    std::span<const std::byte> payload, bool now) {
    const bool small = payload.size() <= inline_bytes;
    Status status = Status::ok;
    {
        std::lock_guard lock(sending_);
        append_record(batch_, number, stream, body, small ? payload : std::span<const std::byte>(),
                      small ? 0 : payload.size());
        if (!small || now || batch_.size() >= batch_bytes) {
            sends_here = true;
            status = flush_locked(small ? std::span<const std::byte>() : payload);
            sends_here = false;
        } else if (answers_.lost()) {
            status = Status::peer_lost;
        }
    }
    send_replies();
    return status;
}

// Called by a thread that reads, perhaps because it finds no room to send. The thread that is sending then
// sends the replies too, so that no reader waits for it.
void Target::reply(std::vector<std::byte> record) {
    {
        std::lock_guard lock(replies_mutex_);
        replies_.insert(replies_.end(), record.begin(), record.end());
    }
    if (!sends_here) send_replies();
}

void Target::send_replies() {
    const auto waiting = [this] {
        std::lock_guard lock(replies_mutex_);
        return !replies_.empty();
    };
    // The thread that holds the lock looks for replies once more after it has released it.
    while (waiting()) {
        std::unique_lock lock(sending_, std::try_to_lock);
        if (!lock.owns_lock()) return;
        std::vector<std::byte> records;
        {
            std::lock_guard taking(replies_mutex_);
            records.swap(replies_);
        }
        sends_here = true;
        (void)flush_locked(records);
        sends_here = false;
    }
}

Status Target::unify(std::string& problem) {
    const std::vector<AddressRange> ranges = mapped_ranges();
    answers_.open_memory([this](std::vector<std::byte> record) { reply(std::move(record)); });
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0, Unify{}, std::as_bytes(std::span(ranges)), true);
    const Answer answer = ask(number);
    if (answer.status != Status::ok) problem = text_of(answer);
    return answer.status;
}

Status Target::flush_locked(std::span<const std::byte> more) {
    const auto read = [this] { answers_.make_room(); };
    const bool sent = write_all(*line_, batch_, read) && write_all(*line_, more, read);
    batch_.clear();
    return sent && !answers_.lost() ? Status::ok : Status::peer_lost;
}

Answer Target::ask(std::uint64_t number) {
    Answer answer = answers_.wait(number);
    if (answer.status == Status::peer_lost && answer.payload.empty()) {
        const std::string why = problem();
        const auto bytes = std::as_bytes(std::span(why.data(), why.size()));
        answer.payload.assign(bytes.begin(), bytes.end());
    }
    return answer;
}

Status Target::load(std::span<const std::byte> image, std::uint64_t& module, std::string& problem) {
    const ImageSecret secret = secret_of(image);
    const ImageName name = name_of(secret);
    std::uint64_t number = answers_.expect();
    (void)send(number, 0, FindImage{name, prove(secret, image_nonce_), image.size()}, {}, true);
    Answer answer = ask(number);
    if (answer.status == Status::unavailable) {
        number = answers_.expect();
        (void)send(number, 0, LoadImage{name}, image, true);
        images_sent_ += image.size();
        answer = ask(number);
    } else if (answer.status == Status::ok) {
        images_found_ += image.size();
    }
    module = answer.value;
    problem = text_of(answer);
    return answer.status;
}

Status Target::load_library(const std::string& name, std::uint64_t& module, std::string& problem) {
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0, LoadLibrary{}, std::as_bytes(std::span(name.data(), name.size())), true);
    const Answer answer = ask(number);
    module = answer.value;
    if (answer.status != Status::ok) problem = text_of(answer);
    return answer.status;
}

Status Target::symbols(std::uint64_t module, std::span<const std::string> names,
                       std::vector<std::uint64_t>& addresses) {
    std::string list;
    for (const std::string& name : names)
        list += name + '\0';
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0, FindSymbols{module, names.size()},
               std::as_bytes(std::span(list.data(), list.size())), true);
    const Answer answer = ask(number);
    if (answer.status != Status::ok) return answer.status;
    addresses.assign(names.size(), 0);
    if (answer.payload.size() != names.size() * sizeof(std::uint64_t)) return Status::protocol;
    if (!names.empty()) std::memcpy(addresses.data(), answer.payload.data(), answer.payload.size());
    return Status::ok;
}

void Target::open_pool() {
    if (!maps_files()) return;
    direct_.pool().open([this](int descriptor, std::uint64_t bytes) {
        std::uint64_t address = 0;
        std::string ignored;
        return map_file(descriptor, bytes, address, ignored) == Status::ok ? address : 0;
    });
    has_pool_ = true;
}

Status Target::allocate(std::uint64_t bytes, std::uint64_t& address, std::string& problem) {
    if (has_pool_ && !answers_.lost() && (address = direct_.pool().allocate(bytes)) != 0) return Status::ok;
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0, Allocate{bytes}, {}, true);
    const Answer answer = ask(number);
    address = answer.value;
    if (answer.status != Status::ok) problem = text_of(answer);
    return answer.status;
}

Status Target::map_file(int descriptor, std::uint64_t bytes, std::uint64_t& address, std::string& problem) {
    struct stat facts {};
    if (fstat(descriptor, &facts) != 0) return Status::invalid;
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0,
               MapFile{static_cast<std::uint64_t>(descriptor), facts.st_dev, facts.st_ino, bytes, address},
               {}, true);
    const Answer answer = ask(number);
    address = answer.value;
    if (answer.status != Status::ok) problem = text_of(answer);
    return answer.status;
}

Status Target::part(std::uint64_t address, std::string& problem) {
    const std::uint64_t number = answers_.expect();
    (void)send(number, 0, Part{address}, {}, true);
    const Answer answer = ask(number);
    if (answer.status != Status::ok) problem = text_of(answer);
    return answer.status;
}

Status Target::release(std::uint32_t stream, std::uint64_t address) {
    if (has_pool_ && direct_.release(stream, address)) return Status::ok;
    return send(0, stream, Release{address}, {}, false);
}

std::uint64_t Target::expect_copy(std::uint32_t stream, const ExpectedCopy& copy) {
    const std::uint64_t number = answers_.expect_copy(copy);
    std::lock_guard lock(copies_mutex_);
    copies_[stream].push_back(number);
    return number;
}

// Before each request of a stream that a sync waits for. Also before there is a pool: it may come while the
// request is under way.
void Target::begin_request(std::uint32_t stream) {
    if (!maps_files()) return;
    for (const DirectCopies::Get& get : direct_.begin_request(stream))
        (void)send_get(stream, get);
}

Status Target::put(std::uint32_t stream, std::uint64_t address, const void* source, std::uint64_t bytes) {
    if (bytes == 0) return Status::ok;
    if (has_pool_ && direct_.put(stream, address, source, bytes))
        return answers_.lost() ? Status::peer_lost : Status::ok;
    begin_request(stream);
    const auto* const data = static_cast<const std::byte*>(source);
    if (reads_program_ && bytes > inline_bytes) {
        auto* const from = const_cast<std::byte*>(data);  // which is only read
        const std::uint64_t number = expect_copy(stream, {ExpectedCopy::Way::to_host, from, address, bytes});
        return send(number, stream, PutFrom{address, reinterpret_cast<std::uint64_t>(source), bytes}, {},
                    false);
    }
    return send(0, stream, Put{address}, std::span(data, bytes), false);
}

Status Target::get(std::uint32_t stream, void* destination, std::uint64_t address, std::uint64_t bytes) {
    if (bytes == 0) return Status::ok;
    if (has_pool_ && direct_.get(stream, destination, address, bytes))
        return answers_.lost() ? Status::peer_lost : Status::ok;
    begin_request(stream);
    return send_get(stream, {0, destination, address, bytes});
}

Status Target::send_get(std::uint32_t stream, const DirectCopies::Get& get) {
    auto* const into = static_cast<std::byte*>(get.destination);
    const std::uint64_t number =
        expect_copy(stream, {ExpectedCopy::Way::from_host, into, get.address, get.bytes});
    return send(number, stream, Get{get.address, reinterpret_cast<std::uint64_t>(into), get.bytes}, {},
                false);
}

Status Target::copy(std::uint32_t stream, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    begin_request(stream);
    return send(0, stream, Copy{to, from, bytes}, {}, false);
}

Status Target::call(std::uint32_t stream, std::uint64_t function, std::span<const std::uint64_t> arguments) {
    begin_request(stream);
    return send(0, stream, Call{function}, std::as_bytes(arguments), false);
}

std::uint32_t Target::new_stream() {
    return ++last_stream_;
}

std::uint64_t Target::begin_sync(std::uint32_t stream) {
    return maps_files() && direct_.is_idle(stream) ? nothing_to_wait_for : send_sync(stream, false);
}

std::uint64_t Target::begin_event(std::uint32_t stream) {
    return maps_files() && direct_.is_idle(stream) ? nothing_to_wait_for : send_sync(stream, true);
}

std::uint64_t Target::send_sync(std::uint32_t stream, bool keeps_error) {
    const std::uint64_t number = answers_.expect();
    {
        std::lock_guard lock(copies_mutex_);
        if (auto copies = copies_.extract(stream)) finishing_[number] = std::move(copies.mapped());
    }
    if (maps_files()) direct_.begin_sync(stream, number, keeps_error);
    (void)send(number, stream, Sync{keeps_error ? 1U : 0U, 0}, {}, true);
    return number;
}

Status Target::finish(std::uint64_t number, bool wait, std::string& problem, std::uint64_t limit_ns,
                      const std::string& limit_problem) {
    if (!wait) return look(number, problem, 0);
    if (number == nothing_to_wait_for) return look(number, problem, 0);
    return end_sync(number, answers_.wait(number, limit_ns, limit_problem), problem);
}

Status Target::look(std::uint64_t number, std::string& problem, std::uint64_t nap_ns) {
    if (number == nothing_to_wait_for) {
        if (!answers_.lost()) return Status::ok;
        problem = this->problem();
        return Status::peer_lost;
    }
    Answer answer;
    return answers_.test(number, answer, nap_ns) ? end_sync(number, answer, problem) : Status::in_progress;
}

Status Target::end_sync(std::uint64_t number, const Answer& answer, std::string& problem) {
    const Status status = answer.status;
    std::vector<std::uint64_t> copies;
    {
        std::lock_guard lock(copies_mutex_);
        if (auto found = finishing_.extract(number)) copies = std::move(found.mapped());
    }
    for (const std::uint64_t copy : copies)
        answers_.forget_data(copy);
    if (maps_files()) direct_.finish(number, status == Status::ok);
    if (status != Status::ok) problem = status == Status::peer_lost ? this->problem() : text_of(answer);
    return status;
}

Status Target::sync(std::uint32_t stream, std::string& problem) {
    return finish(begin_sync(stream), true, problem);
}

}  // namespace offpath::target
