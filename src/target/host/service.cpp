#include "target/host/service.h"

#include "base/short_spin.h"
#include "target/host/calls.h"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

namespace offpath::target {
namespace {

constexpr std::uint64_t nap_ns = 100'000'000;
constexpr auto look_interval = std::chrono::milliseconds(500);
constexpr auto grace = std::chrono::milliseconds(200);
constexpr std::uint64_t room_nap_ns = 1'000'000;
constexpr int requests_at_once = 64;

// The function that this thread runs; null: none.
thread_local const char* current_function = nullptr;
// The function that was started last, for threads that a function has made.
std::atomic<const char*> last_function{nullptr};

// The stack on which a thread that has used up its own handles the signal.
class SignalStack {
  public:
    SignalStack() : memory_(bytes) {
        stack_t stack{};
        stack.ss_sp = memory_.data();
        stack.ss_size = bytes;
        sigaltstack(&stack, nullptr);
    }
    ~SignalStack() {
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

  private:
    static constexpr std::size_t bytes = 256 << 10;
    std::vector<std::byte> memory_;
};

std::span<const std::byte> text_bytes(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Service::Service(Line& line, ServiceOptions options)
    : line_(line),
      options_(std::move(options)),
      reader_(line),
      output_([this](int descriptor, const std::string& text) {
          std::vector<std::byte> record;
          append_record(record, 0, 0, Output{static_cast<std::uint64_t>(descriptor)}, text_bytes(text));
          send(record);
      }) {}

Service::~Service() = default;

bool Service::run() {
    add_thread();
    std::unique_lock lock(threads_mutex_);
    // A thread that reads notices that the program has hung up, but perhaps no thread reads.
    while (!over_ && !line_.lost())
        if (!changed_.wait_for(lock, look_interval, [this] { return over_.load(); })) {
            lock.unlock();
            beat();
            lock.lock();
        }
    over_ = true;
    if (!changed_.wait_for(lock, grace, [this] { return working_ == 0; })) return false;
    for (std::thread& thread : threads_)
        thread.join();
    return true;
}

// Shows the program that this process is alive. What it has not read yet shows it as well.
void Service::beat() {
    std::unique_lock lock(sending_, std::try_to_lock);
    if (!lock.owns_lock() || !line_.drained()) return;
    std::vector<std::byte> record;
    append_record(record, 0, 0, Beat{static_cast<std::uint64_t>(getpid())});
    (void)write_all(line_, record, [this] { line_.sleep(room_nap_ns); });
}

void Service::end() {
    std::lock_guard lock(threads_mutex_);
    over_ = true;
    changed_.notify_all();
}

// The loop of each thread: it works on a stream if one is ready, else reads requests, else sleeps.
void Service::work() {
    const SignalStack stack;
    while (!over_) {
        // First, so that lead() never counts a thread that has a stream.
        --idle_;
        const auto stream = streams_.take();
        if (stream != nullptr) run_stream(*stream);
        ++idle_;
        if (stream != nullptr) continue;
        if (std::unique_lock reading(reading_, std::try_to_lock); reading.owns_lock() && lead()) continue;
        if (!over_) line_.sleep(nap_ns);
    }
    --idle_;
    line_.wake();
    std::lock_guard lock(threads_mutex_);
    --working_;
    changed_.notify_all();
}

// Reads requests. False: none came for a while.
bool Service::lead() {
    line_.attend();
    ShortSpin spin(options_.spin_ns);
    Head head;
    bool some = false;
    while (!some) {
        for (int i = 0; i < requests_at_once && reader_.next(head); ++i) {
            some = true;
            read_request(head);
        }
        if (some) break;
        if (line_.lost() && !line_.readable()) {
            end();
            break;
        }
        if (!spin.again()) break;
    }
    const std::size_t ready = streams_.ready();
    line_.leave();
    // This thread takes one of the ready streams itself.
    for (std::size_t i = 1; i < ready; ++i)
        line_.wake();
    // One thread stays to read, since functions may wait for what comes next.
    if (ready > 0)
        for (std::size_t idle = idle_; idle <= ready; ++idle)
            add_thread();
    return some;
}

void Service::add_thread() {
    std::lock_guard lock(threads_mutex_);
    if (threads_.size() == max_threads || over_) return;
    ++working_;
    ++idle_;
    threads_.emplace_back([this] { work(); });
}

template <typename Body>
void Service::read_body(const Head& head) {
    Body body;
    if constexpr (!std::is_empty_v<Body>) {
        if (head.bytes < sizeof body || !reader_.body(body)) return end();
    }
    on(head, body);
}

void Service::read_request(const Head& head) {
    switch (head.kind) {
        case Kind::find_image:
            return read_body<FindImage>(head);
        case Kind::load_image:
            return read_body<LoadImage>(head);
        case Kind::load_library:
            return read_body<LoadLibrary>(head);
        case Kind::find_symbols:
            return read_body<FindSymbols>(head);
        case Kind::allocate:
            return read_body<Allocate>(head);
        case Kind::map_file:
            return read_body<MapFile>(head);
        case Kind::part:
            return read_body<Part>(head);
        case Kind::release:
            return read_body<Release>(head);
        case Kind::put:
            return read_body<Put>(head);
        case Kind::put_from:
            return read_body<PutFrom>(head);
        case Kind::get:
            return read_body<Get>(head);
        case Kind::copy:
            return read_body<Copy>(head);
        case Kind::call:
            return read_body<Call>(head);
        case Kind::sync:
            return read_body<Sync>(head);
        case Kind::unify:
            return read_body<Unify>(head);
        case Kind::fetched:
            return read_body<Fetched>(head);
        default:
            end();  // not a request: the program and this process do not understand each other
    }
}

void Service::on(const Head& head, const FindImage& find) {
    const std::uint64_t module = images_.find(find.digest);
    answer(head.number, module != 0 ? Status::ok : Status::unavailable, module, {});
}

void Service::on(const Head& head, const LoadImage& load) {
    const std::uint64_t bytes = head.bytes - sizeof load;
    if (bytes > max_image_bytes) {
        reader_.skip(bytes);
        return answer(head.number, Status::memory,
                      fmt::format("an image of {} bytes; at most {} are accepted", bytes, max_image_bytes));
    }
    std::vector<std::byte> image(bytes);
    if (!reader_.take(image)) return;
    std::uint64_t module = 0;
    std::string problem;
    if (Status status = images_.load(load.digest, image, module, problem); status != Status::ok)
        return answer(head.number, status, problem);
    answer(head.number, Status::ok, module, {});
}

void Service::on(const Head& head, const LoadLibrary&) {
    constexpr std::uint64_t max_name = 64;
    std::string name(std::min(head.bytes, max_name), '\0');
    if (!reader_.take(std::as_writable_bytes(std::span(name))) || !reader_.skip(head.bytes - name.size()))
        return;
    std::uint64_t module = 0;
    std::string problem;
    if (Status status = images_.load_library(name, module, problem); status != Status::ok)
        return answer(head.number, status, problem);
    answer(head.number, Status::ok, module, {});
}

void Service::on(const Head& head, const FindSymbols& find) {
    std::vector<char> names(head.bytes - sizeof find);
    if (!reader_.take(std::as_writable_bytes(std::span(names)))) return;
    std::vector<std::uint64_t> addresses;
    for (std::size_t at = 0; at < names.size() && addresses.size() < max_symbols;) {
        const std::string name(names.data() + at, strnlen(names.data() + at, names.size() - at));
        addresses.push_back(reinterpret_cast<std::uint64_t>(images_.symbol(find.module, name)));
        at += name.size() + 1;
    }
    answer(head.number, addresses.size() == find.count ? Status::ok : Status::invalid, addresses.size(),
           std::as_bytes(std::span(addresses)));
}

void Service::on(const Head& head, const Allocate& allocate) {
    std::uint64_t address = 0;
    std::string problem;
    if (Status status = memory_.allocate(allocate.bytes, address, problem); status != Status::ok)
        return answer(head.number, status, problem);
    answer(head.number, Status::ok, address, {});
}

void Service::on(const Head& head, const MapFile& file) {
    std::uint64_t address = 0;
    std::string problem;
    if (Status status = files_.map(options_.program_pid, file, address, problem); status != Status::ok)
        return answer(head.number, status, problem);
    answer(head.number, Status::ok, address, {});
}

void Service::on(const Head& head, const Part& part) {
    const bool done = files_.part(part.address);
    answer(head.number, done ? Status::ok : Status::invalid, done ? "" : "no file is mapped there");
}

void Service::on(const Head& head, const Release& release) {
    queue(head.stream, release);
}

void Service::on(const Head& head, const Put& put) {
    const std::uint64_t bytes = head.bytes - sizeof put;
    // A page of unified memory may come over the line, which is read here.
    if (unified_ == nullptr && streams_.idle(head.stream)) {
        reader_.take(std::span(reinterpret_cast<std::byte*>(put.address), bytes));
        return;
    }
    PutWork work{put.address, std::vector<std::byte>(bytes)};
    if (reader_.take(work.data)) queue(head.stream, std::move(work));
}

void Service::on(const Head& head, const PutFrom& put) {
    queue(head.stream, put);
}

void Service::on(const Head& head, const Get& get) {
    queue(head.stream, GetWork{get, head.number});
}

void Service::on(const Head& head, const Copy& copy) {
    queue(head.stream, copy);
}

void Service::on(const Head& head, const Call& call) {
    const std::uint64_t bytes = head.bytes - sizeof call;
    CallWork work{call.function,
                  std::vector<std::uint64_t>(std::min<std::uint64_t>(bytes / 8, max_arguments + 1))};
    const std::uint64_t taken = work.arguments.size() * sizeof(std::uint64_t);
    if (reader_.take(std::as_writable_bytes(std::span(work.arguments))) && reader_.skip(bytes - taken))
        queue(head.stream, std::move(work));
}

void Service::on(const Head& head, const Sync&) {
    queue(head.stream, SyncWork{head.number});
}

void Service::on(const Head& head, const Unify&) {
    std::vector<AddressRange> ranges(std::min<std::uint64_t>(head.bytes / sizeof(AddressRange), max_symbols));
    const std::uint64_t taken = ranges.size() * sizeof(AddressRange);
    if (!reader_.take(std::as_writable_bytes(std::span(ranges))) || !reader_.skip(head.bytes - taken)) return;
    std::unique_ptr<ProgramMemory> program;
    if (options_.program != nullptr) {
        program = std::make_unique<LocalProgram>(options_.program_pid);
    } else {
        fetched_ = std::make_unique<FetchedPages>([this](std::span<const std::byte> record) { send(record); },
                                                  [this] { return over_.load(); });
        program = std::make_unique<RemoteProgram>(*fetched_);
    }
    auto unified = std::make_unique<UnifiedMemory>(std::move(program));
    std::string problem;
    if (Status status = unified->reserve(ranges, problem); status != Status::ok)
        return answer(head.number, status, problem);
    unified_ = std::move(unified);
    answer(head.number, Status::ok, 0, {});
}

void Service::on(const Head& head, const Fetched&) {
    std::vector<std::byte> bytes(std::min<std::uint64_t>(head.bytes, max_fetch_bytes));
    if (reader_.take(bytes) && reader_.skip(head.bytes - bytes.size()) && fetched_ != nullptr)
        fetched_->arrived(head.number, bytes);
}

void Service::queue(std::uint32_t stream, Work work) {
    streams_.add(stream, std::move(work));
}

void Service::run_stream(Stream& stream) {
    Work work;
    while (!over_ && streams_.next(stream, work))
        std::visit([&](auto& each) { perform(stream, each); }, work);
}

void Service::fail(Stream& stream, Status status, std::string problem) {
    if (stream.status != 0) return;
    stream.status = static_cast<std::int32_t>(status);
    stream.problem = std::move(problem);
}

// After what may have changed the program's memory.
void Service::give_changes(Stream& stream, const char* name) {
    std::string problem;
    if (unified_ != nullptr && !unified_->release(problem))
        fail(stream, Status::access, fmt::format("{}: {}", name, problem));
}

void Service::perform(Stream&, PutWork& work) {
    std::memcpy(reinterpret_cast<void*>(work.address), work.data.data(), work.data.size());
}

void Service::perform(Stream& stream, PutFrom& work) {
    Status status = Status::unsupported;
    if (options_.program != nullptr)
        status = options_.program->read(work.source, reinterpret_cast<void*>(work.address), work.bytes);
    if (status != Status::ok)
        fail(stream, status,
             fmt::format("{} bytes at {:#x} of the program cannot be read: {}", work.bytes, work.source,
                         to_string(status)));
}

void Service::perform(Stream& stream, GetWork& work) {
    const auto* const from = reinterpret_cast<const std::byte*>(work.get.address);
    if (options_.program != nullptr && work.get.bytes > inline_bytes) {
        const Status status = options_.program->write(work.get.destination, from, work.get.bytes);
        if (status != Status::ok)
            fail(stream, status,
                 fmt::format("{} bytes at {:#x} of the program cannot be written: {}", work.get.bytes,
                             work.get.destination, to_string(status)));
        return;
    }
    std::vector<std::byte> head;
    for (std::uint64_t done = 0; done < work.get.bytes; done += data_piece) {
        const std::uint64_t part = std::min<std::uint64_t>(data_piece, work.get.bytes - done);
        head.clear();
        append_record(head, work.number, 0, Data{work.get.destination + done}, {}, part);
        if (part <= inline_bytes) {
            // Send both together, and read the memory before the lock is taken.
            head.insert(head.end(), from + done, from + done + part);
            send(head);
        } else {
            send(head, std::span(from + done, part));
        }
    }
}

void Service::perform(Stream&, Copy& work) {
    std::memmove(reinterpret_cast<void*>(work.to), reinterpret_cast<const void*>(work.from), work.bytes);
}

void Service::perform(Stream& stream, CallWork& work) {
    // The same region is often launched many times in a row. Only the first launch looks up its name.
    thread_local std::uint64_t named = 0;
    thread_local const char* name = nullptr;
    if (std::exchange(named, work.function) != work.function)
        name = images_.name_of(reinterpret_cast<const void*>(work.function));
    current_function = name;
    last_function.store(name, std::memory_order_relaxed);
    std::string problem;
    if (unified_ != nullptr && !unified_->acquire(problem))
        fail(stream, Status::access, fmt::format("{}: {}", name, problem));
    if (stream.status == 0 && !call_function(work.function, work.arguments, problem))
        fail(stream, Status::system, fmt::format("{}: {}", name, problem));
    give_changes(stream, name);
    current_function = nullptr;
}

void Service::perform(Stream& stream, SyncWork& work) {
    output_.flush();
    give_changes(stream, "a copy");
    const Status status = static_cast<Status>(std::exchange(stream.status, 0));
    answer(work.number, status, std::exchange(stream.problem, {}));
}

void Service::perform(Stream& stream, Release& work) {
    if (!memory_.release(work.address) && !files_.unmap(work.address))
        fail(stream, Status::invalid, fmt::format("{:#x} is no device memory", work.address));
}

void Service::answer(std::uint64_t number, Status status, std::uint64_t value,
                     std::span<const std::byte> payload) {
    std::vector<std::byte> record;
    append_record(record, number, 0, Done{static_cast<std::int32_t>(status), 0, value}, payload);
    send(record);
}

void Service::answer(std::uint64_t number, Status status, const std::string& problem) {
    answer(number, status, 0, text_bytes(problem));
}

void Service::send(std::span<const std::byte> first, std::span<const std::byte> second) {
    std::lock_guard lock(sending_);
    const auto nap = [this] { line_.sleep(room_nap_ns); };
    if (!write_all(line_, first, nap) || !write_all(line_, second, nap)) end();
}

bool Service::page_fault(std::uint64_t address, std::uint64_t instruction) {
    return unified_ != nullptr && unified_->fault(address, instruction);
}

void Service::obituary(int signal, std::uint64_t address) {
    const char* function = current_function;
    if (function == nullptr) function = last_function.load(std::memory_order_relaxed);
    // Another thread may be sending, so wait for it. But if this thread was sending when the signal came, it
    // cannot continue.
    bool mine = false;
    for (int i = 0; i < 1000 && !(mine = sending_.try_lock()); ++i) {
        const timespec moment{0, 1'000'000};
        nanosleep(&moment, nullptr);
    }
    if (!mine) return line_.hang_up();
    std::byte record[sizeof(Head) + sizeof(Lost) + 512];
    const std::size_t length = function != nullptr ? strnlen(function, 512) : 0;
    Head head;
    head.kind = Kind::lost;
    head.bytes = sizeof(Lost) + length;
    const Lost lost{static_cast<std::uint64_t>(signal), address};
    std::memcpy(record, &head, sizeof head);
    std::memcpy(record + sizeof head, &lost, sizeof lost);
    std::memcpy(record + sizeof head + sizeof lost, function != nullptr ? function : "", length);
    std::span<const std::byte> rest(record, sizeof head + sizeof lost + length);
    for (int i = 0; i < 1000 && !rest.empty(); ++i) {
        const std::size_t written = line_.write(rest);
        rest = rest.subspan(written);
        if (written > 0) continue;
        const timespec moment{0, 1'000'000};
        nanosleep(&moment, nullptr);
    }
}

}  // namespace offpath::target
