#include "target/program/answers.h"

#include "base/clock.h"
#include "base/short_spin.h"
#include "memory/checked_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace offpath::target {
namespace {

constexpr std::uint64_t longest_text = 64 << 10;

}  // namespace

Answers::Answers(Line& line, Tell tell, std::uint64_t spin_ns, std::uint64_t patience_ns, bool here)
    : line_(line),
      tell_(std::move(tell)),
      spin_ns_(spin_ns),
      patience_ns_(patience_ns),
      here_(here),
      reader_(line),
      help_(line),
      signs_(patience_ns) {
    reader_.wait_at_most(patience_ns);
}

void Answers::open_memory(Reply reply) {
    reply_ = std::move(reply);
}

std::uint64_t Answers::expect() {
    std::lock_guard lock(mutex_);
    entries_[++last_] = {};
    return last_;
}

std::uint64_t Answers::expect_copy(const ExpectedCopy& copy) {
    std::lock_guard lock(mutex_);
    expected_[++last_] = copy;
    return last_;
}

void Answers::forget_data(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    expected_.erase(number);
}

std::string Answers::why() const {
    std::lock_guard lock(mutex_);
    if (!why_.empty()) return why_;
    if (const std::string cause = line_.cause(); !cause.empty())
        return fmt::format("the connection to its process on the device is lost: {}", cause);
    return "its process on the device ended without a word (was it killed, or the device switched off?)";
}

// False: it has not arrived. Needs mutex_.
bool Answers::take(std::uint64_t number, Answer& answer) {
    const auto found = entries_.find(number);
    if (found == entries_.end()) {
        answer = {Status::invalid, 0, {}};
        return true;
    }
    if (!found->second.done) {
        if (!lost_) return false;
        found->second.answer.status = Status::peer_lost;
    }
    answer = std::move(found->second.answer);
    entries_.erase(found);
    return true;
}

// Waits until the answer is there, or this thread may begin to read, at most for `limit_ns`. Needs mutex_.
void Answers::wait_for_reader(std::unique_lock<std::mutex>& lock, std::uint64_t number,
                              std::uint64_t limit_ns) {
    changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns), [&] {
        const auto found = entries_.find(number);
        return !is_read_ || lost_ || found == entries_.end() || found->second.done;
    });
}

// Another thread that waits reads from now on.
void Answers::stop_reading() {
    {
        const std::lock_guard lock(mutex_);
        is_read_ = false;
    }
    changed_.notify_all();
}

// Reads what is there. For the thread that reads.
void Answers::serve_all() {
    line_.attend();
    while (serve()) {
    }
    listen();
    line_.leave();
}

bool Answers::test(std::uint64_t number, Answer& answer, std::uint64_t nap_ns) {
    const std::uint64_t until = nap_ns != 0 ? now_ns() + nap_ns : 0;
    const auto left_ns = [&] { return nap_ns != 0 ? until - std::min(until, now_ns()) : 0; };
    std::unique_lock lock(mutex_);
    while (!take(number, answer)) {
        if (is_read_) {
            wait_for_reader(lock, number, left_ns());
        } else {
            is_read_ = true;
            lock.unlock();
            serve_all();
            lock.lock();
            const bool done = take(number, answer);
            lock.unlock();
            if (const std::uint64_t left = done ? 0 : left_ns(); left != 0) {
                line_.sleep(left);
                if (line_.lost() && !line_.readable()) give_up();
                serve_all();
            }
            stop_reading();
            if (done) return true;
            lock.lock();
        }
        if (left_ns() == 0) return take(number, answer);
    }
    return true;
}

Answer Answers::wait(std::uint64_t number, std::uint64_t limit_ns, const std::string& limit_problem) {
    const std::uint64_t started = now_ns();
    const auto too_long = [&] { return limit_ns != 0 && now_ns() - started > limit_ns; };
    Answer answer;
    ShortSpin spin(spin_ns_);
    std::unique_lock lock(mutex_);
    while (!take(number, answer)) {
        if (is_read_) {
            wait_for_reader(lock, number, line_nap_ns);
            lock.unlock();
            if (too_long()) abandon(limit_problem);
            lock.lock();
            continue;
        }
        is_read_ = true;
        lock.unlock();
        line_.attend();
        bool over = false;
        while (!over) {
            if (serve()) {
                spin.restart();
                over = true;
            } else if (lost_) {
                over = true;
            } else if (!spin.again()) {
                line_.leave();
                line_.sleep(line_nap_ns);
                line_.attend();
                if (line_.lost() && !line_.readable()) give_up();
                listen();
                if (too_long()) abandon(limit_problem);
                over = lost_;
            }
        }
        line_.leave();
        stop_reading();
        lock.lock();
    }
    return answer;
}

void Answers::make_room() {
    bool reads = false;
    {
        const std::lock_guard lock(mutex_);
        reads = !std::exchange(is_read_, true);
    }
    bool served = false;
    if (reads) {
        served = serve();
        if (!served) listen();
        stop_reading();
    }
    if (served) return;
    if (line_.lost() && !line_.readable()) give_up();
    line_.sleep(record_nap_ns);
}

// Reads one record. False: none is there. For the thread that reads.
bool Answers::serve() {
    Head head;
    if (lost_) return false;
    if (!reader_.next(head)) {
        return false;
    }
    if (!read_record(head)) give_up();
    silence_.end();
    heard_ = true;
    return true;
}

// Gives up a host that has been silent for too long. For the thread that reads.
void Answers::listen() {
    if (patience_ns_ == 0 || lost_ || !is_silent()) return;
    abandon(
        fmt::format("there was no sign of life from its process on the device for {} s (was it stopped, or "
                    "the network cut?)",
                    patience_ns_ / 1'000'000'000));
}

// A host on this system is slow, not lost, while its first thread, which beats, waits for a CPU.
bool Answers::is_silent() {
    if (!here_ || host_pid_ == 0) return silence_.lasts_ns() >= patience_ns_;
    const std::uint64_t now = now_ns();
    if (!signs_.due(now)) return false;
    const auto pid = static_cast<pid_t>(host_pid_);
    return signs_.look(now, std::exchange(heard_, false), control::thread_state(pid, pid)) ==
           control::LifeSigns::Next::lost;
}

void Answers::abandon(const std::string& problem) {
    {
        std::lock_guard lock(mutex_);
        if (!lost_ && why_.empty()) why_ = problem;
    }
    line_.hang_up();
    give_up();
}

void Answers::give_up() {
    {
        const std::lock_guard lock(mutex_);
        lost_ = true;
    }
    changed_.notify_all();
}

bool Answers::read_record(const Head& head) {
    switch (head.kind) {
        case Kind::done:
            return read_done(head);
        case Kind::data:
            return read_data(head);
        case Kind::output:
            return read_output(head);
        case Kind::lost:
            (void)read_lost(head);
            return false;
        case Kind::fetch:
            return read_fetch(head);
        case Kind::store:
            return read_store(head);
        case Kind::beat:
            return read_beat(head);
        case Kind::join:
            return read_join(head);
        default:
            return false;
    }
}

bool Answers::read_done(const Head& head) {
    Done done;
    if (head.bytes < sizeof done || head.bytes > sizeof done + max_symbols * 8 || !reader_.body(done))
        return false;
    Answer answer{static_cast<Status>(done.status), done.value,
                  std::vector<std::byte>(head.bytes - sizeof done)};
    if (!reader_.take(answer.payload)) return false;
    {
        std::lock_guard lock(mutex_);
        const auto found = entries_.find(head.number);
        if (found != entries_.end()) found->second = {true, std::move(answer)};
    }
    changed_.notify_all();
    return true;
}

bool Answers::read_data(const Head& head) {
    Data data;
    if (head.bytes < sizeof data || !reader_.body(data)) return false;
    const std::uint64_t bytes = head.bytes - sizeof data;
    std::byte* into = nullptr;
    {
        std::lock_guard lock(mutex_);
        const auto found = expected_.find(head.number);
        if (found != expected_.end() && found->second.way == ExpectedCopy::Way::from_host) {
            const std::uint64_t offset =
                data.destination - reinterpret_cast<std::uint64_t>(found->second.here);
            if (offset <= found->second.bytes && bytes <= found->second.bytes - offset)
                into = found->second.here + offset;
        }
    }
    return into != nullptr ? reader_.take(std::span(into, bytes)) : reader_.skip(bytes);
}

bool Answers::read_text(const Head& head, std::uint64_t body, std::string& text) {
    const std::uint64_t bytes = head.bytes - body;
    if (bytes > longest_text) return false;
    text.resize(bytes);
    return reader_.take(std::as_writable_bytes(std::span(text.data(), text.size())));
}

bool Answers::read_output(const Head& head) {
    Output output;
    std::string text;
    if (head.bytes < sizeof output || !reader_.body(output) || !read_text(head, sizeof output, text))
        return false;
    tell_(output.descriptor == 2 ? 2 : 1, text);
    return true;
}

bool Answers::read_lost(const Head& head) {
    Lost lost;
    std::string text;
    if (head.bytes < sizeof lost || !reader_.body(lost) || !read_text(head, sizeof lost, text)) return false;
    if (text.empty()) text = "its process on the device";
    if (lost.signal == 0) {
        text += " called exit()";
    } else {
        text +=
            fmt::format(" ended with signal {} ({})", lost.signal, strsignal(static_cast<int>(lost.signal)));
        if (lost.address != 0) text += fmt::format(" at address {:#x}", lost.address);
        std::byte there;
        if (reply_ == nullptr && memory::CheckedMemory::read_some(lost.address, std::span(&there, 1)) == 1)
            text += ", which the program has and has not mapped to the device";
    }
    set_why(std::move(text));
    return true;
}

bool Answers::read_beat(const Head& head) {
    Beat beat;
    if (head.bytes != sizeof beat || !reader_.body(beat)) return false;
    host_pid_ = beat.pid;
    return true;
}

bool Answers::read_join(const Head& head) {
    Join join;
    if (head.bytes != sizeof join || !reader_.body(join)) return false;
    ExpectedCopy copy;
    {
        std::lock_guard lock(mutex_);
        const auto found = expected_.find(head.number);
        if (found == expected_.end()) return true;
        copy = found->second;
    }
    help_.work(join, copy);
    return true;
}

bool Answers::read_fetch(const Head& head) {
    Fetch fetch;
    if (reply_ == nullptr || head.bytes != sizeof fetch || !reader_.body(fetch) ||
        fetch.bytes > max_fetch_bytes)
        return false;
    std::vector<std::byte> bytes(fetch.bytes);
    bytes.resize(memory::CheckedMemory::read_some(fetch.address, bytes));
    std::vector<std::byte> record;
    append_record(record, head.number, 0, Fetched{}, bytes);
    reply_(std::move(record));
    return true;
}

bool Answers::read_store(const Head& head) {
    Store store;
    if (reply_ == nullptr || head.bytes < sizeof store || !reader_.body(store) ||
        store.count > max_stored_pieces)
        return false;
    std::vector<Piece> heads(store.count);
    const std::uint64_t bytes = head.bytes - sizeof store - heads.size() * sizeof(Piece);
    if (!reader_.take(std::as_writable_bytes(std::span(heads))) || bytes > max_stored_bytes) return false;
    std::vector<std::byte> data(bytes);
    if (!reader_.take(data)) return false;
    std::vector<memory::ForeignPiece> pieces;
    std::size_t at = 0;
    for (const Piece& piece : heads) {
        if (piece.bytes > data.size() - at) return false;
        pieces.push_back({piece.address, data.data() + at, piece.bytes});
        at += piece.bytes;
    }
    if (memory::CheckedMemory::write_pieces(pieces) == Status::ok) return true;
    set_why("a region has written where the program may not write");
    return false;
}

void Answers::set_why(std::string why) {
    std::lock_guard lock(mutex_);
    why_ = std::move(why);
}

}  // namespace offpath::target
