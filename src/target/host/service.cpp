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

constexpr auto look_interval = std::chrono::milliseconds(500);
constexpr auto grace = std::chrono::milliseconds(200);
constexpr int requests_at_once = 64;

// The function that this thread runs; null: none.
thread_local const char* current_function = nullptr;
// The function that was started last, for threads that a function has made.
std::atomic<const char*> last_function{nullptr};

constexpr const char* a_copy = "a copy";

// While it lives, what this thread does is a copy.
struct Copying {
    Copying() { current_function = a_copy; }
    ~Copying() { current_function = nullptr; }
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;
};

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

Service::Service(Line& line, FileDescriptor images, ServiceOptions options)
    : line_(line),
      options_(std::move(options)),
      requests_(line, *this),
      kept_(std::move(images)),
      joint_(line),
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
    (void)write_all(line_, record, [this] { line_.sleep(record_nap_ns); });
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
        if (!over_) line_.sleep(line_nap_ns);
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
    bool some = false;
    while (!some) {
        auto next = Requests::Next::request;
        for (int i = 0; i < requests_at_once && (next = requests_.next()) == Requests::Next::request; ++i)
            some = true;
        if (next == Requests::Next::broken) end();
        if (some || over_) break;
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

void Service::find_image(std::uint64_t number, const FindImage& find) {
    if (const std::uint64_t module = images_.find(find.name); module != 0)
        return answer(number, Status::ok, module, std::string());
    if (memory::File file = kept_.find(find); file) return load_file(number, find.name, std::move(file), 0);
    answer(number, Status::unavailable, 0, std::string());
}

void Service::load_image(std::uint64_t number, const LoadImage& load, std::span<const std::byte> image) {
    memory::File file;
    std::string problem;
    Status status = Status::protocol;
    if (name_of(secret_of(image)) != load.name)
        problem = fmt::format("the {} bytes that arrived are not the image that was announced", image.size());
    else
        status = Images::make_file(image, file, problem);
    if (status != Status::ok) {
        kept_.will_not_keep(load.name);
        return answer(number, status, 0, problem);
    }
    load_file(number, load.name, std::move(file), image.size());
}

// `keep`: how many bytes the daemon is to keep; 0: it has the image.
void Service::load_file(std::uint64_t number, const ImageName& name, memory::File file, std::uint64_t keep) {
    std::uint64_t module = 0;
    std::string problem;
    const Status status = images_.load(name, std::move(file), module, problem);
    if (keep != 0) {
        if (status == Status::ok)
            kept_.keep(name, images_.file(module), keep);
        else
            kept_.will_not_keep(name);
    }
    answer(number, status, module, problem);
}

void Service::load_library(std::uint64_t number, const std::string& name) {
    // MPI's calls are those of the daemon.
    if (name.starts_with("region-mpi-") && !options_.no_daemon.empty())
        return answer(number, Status::access, 0, options_.no_daemon);
    std::uint64_t module = 0;
    std::string problem;
    const Status status = images_.load_library(name, module, problem);
    answer(number, status, module, problem);
}

void Service::find_symbols(std::uint64_t number, const FindSymbols& find,
                           std::span<const std::string> names) {
    std::vector<std::uint64_t> addresses;
    for (const std::string& name : names)
        addresses.push_back(reinterpret_cast<std::uint64_t>(images_.symbol(find.module, name)));
    answer(number, Status::ok, addresses.size(), std::as_bytes(std::span(addresses)));
}

void Service::allocate(std::uint64_t number, const Allocate& allocate) {
    std::uint64_t address = 0;
    std::string problem;
    const Status status = memory_.allocate(allocate.bytes, address, problem);
    answer(number, status, address, problem);
}

void Service::map_file(std::uint64_t number, const MapFile& file) {
    std::uint64_t address = 0;
    std::string problem;
    const Status status = files_.map(options_.program_pid, file, address, problem);
    answer(number, status, address, problem);
}

void Service::part(std::uint64_t number, const Part& part) {
    const bool done = files_.part(part.address);
    answer(number, done ? Status::ok : Status::invalid, 0, done ? "" : "no file is mapped there");
}

void Service::unify(std::uint64_t number, std::span<const AddressRange> ranges) {
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
    const Status status = unified->reserve(ranges, problem);
    if (status == Status::ok) unified_ = std::move(unified);
    answer(number, status, 0, problem);
}

void Service::fetched(std::uint64_t number, std::span<const std::byte> bytes) {
    if (fetched_ != nullptr) fetched_->arrived(number, bytes);
}

std::span<std::byte> Service::place(std::uint32_t stream, const Put& put, std::uint64_t bytes) {
    // A page of unified memory may come over the line, which is being read here.
    if (unified_ != nullptr || !streams_.idle(stream)) return {};
    current_function = a_copy;  // this thread reads it next
    return {reinterpret_cast<std::byte*>(put.address), bytes};
}

void Service::queue(std::uint32_t stream, Work work) {
    streams_.add(stream, std::move(work));
}

void Service::refuse(std::uint64_t number, Status status, const std::string& why) {
    answer(number, status, 0, why);
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
    const Copying copying;
    std::memcpy(reinterpret_cast<void*>(work.address), work.data.data(), work.data.size());
}

// Copies between this memory and the program's. The program may help with a request that has a number.
Status Service::move(JointCopies::Way way, std::uint64_t number, std::uint64_t here, std::uint64_t there,
                     std::uint64_t bytes) {
    if (options_.program == nullptr) return Status::unsupported;
    const auto copy = [&](std::uint64_t offset, std::uint64_t part) {
        void* const mine = reinterpret_cast<void*>(here + offset);
        return way == JointCopies::Way::from_program ? options_.program->read(there + offset, mine, part)
                                                     : options_.program->write(there + offset, mine, part);
    };
    // Pages of unified memory are here only for this process's own accesses.
    if (number == 0 || unified_ != nullptr) return copy(0, bytes);
    const auto ask = [&](const Join& join) {
        std::vector<std::byte> record;
        append_record(record, number, 0, join);
        send(record);
    };
    return joint_.run(bytes, copy, ask);
}

void Service::perform(Stream& stream, PutFromWork& work) {
    const Copying copying;
    const PutFrom& put = work.put;
    const Status status =
        move(JointCopies::Way::from_program, work.number, put.address, put.source, put.bytes);
    if (status != Status::ok)
        fail(stream, status,
             fmt::format("{} bytes at {:#x} of the program cannot be read to {:#x} on the device: {}",
                         put.bytes, put.source, put.address, to_string(status)));
}

void Service::perform(Stream& stream, GetWork& work) {
    const Copying copying;
    const auto* const from = reinterpret_cast<const std::byte*>(work.get.address);
    if (options_.program != nullptr && work.get.bytes > inline_bytes) {
        const Status status = move(JointCopies::Way::to_program, work.number, work.get.address,
                                   work.get.destination, work.get.bytes);
        if (status != Status::ok)
            fail(
                stream, status,
                fmt::format("{} bytes at {:#x} of the program cannot be written from {:#x} on the device: {}",
                            work.get.bytes, work.get.destination, work.get.address, to_string(status)));
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
    const Copying copying;
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
    answer(work.number, static_cast<Status>(stream.status), 0, stream.problem);
    if (work.keeps_error) return;
    stream.status = 0;
    stream.problem.clear();
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

void Service::answer(std::uint64_t number, Status status, std::uint64_t value, const std::string& problem) {
    answer(number, status, value, status != Status::ok ? text_bytes(problem) : std::span<const std::byte>());
}

void Service::send(std::span<const std::byte> first, std::span<const std::byte> second) {
    std::lock_guard lock(sending_);
    const auto nap = [this] { line_.sleep(record_nap_ns); };
    if (!write_all(line_, first, nap) || !write_all(line_, second, nap)) end();
}

bool Service::page_fault(std::uint64_t address, std::uint64_t instruction) {
    // A process that a function has made by fork must not write to the line.
    if (fetched_ != nullptr && getpid() != process_) return false;
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
