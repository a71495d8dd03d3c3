#include "trace/trace.h"

#include "base/clock.h"
#include "base/environment.h"

#include <pthread.h>
#include <unistd.h>

#include <mutex>

namespace offpath::trace {

std::atomic<bool> is_on{false};

namespace {

constexpr std::uint64_t close_ns = 20'000;  // between polls that become one

// Never destroyed: threads may write while the process ends.
File& file() {
    static File& instance = *new File;
    return instance;
}

// Where a thread writes.
struct Cursor {
    ChunkHeader* chunk = nullptr;
    std::uint64_t records = 0;
    std::uint16_t polled = UINT16_MAX;  // what the latest record polled, if it was a poll
};
thread_local Cursor cursor;

Record* room(std::uint64_t records) {
    if (cursor.chunk == nullptr || cursor.records + records > records_per_chunk) {
        ChunkHeader* const next = file().take_chunk();
        if (next == nullptr) return nullptr;
        cursor = {next, 0, UINT16_MAX};
    }
    return reinterpret_cast<Record*>(cursor.chunk + 1) + cursor.records;
}

void written(std::uint64_t records) {
    cursor.records += records;
    std::atomic_ref(cursor.chunk->records).store(cursor.records, std::memory_order_release);
}

constexpr std::uint16_t joined(Kind kind, Phase phase) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(kind) * 4 + static_cast<unsigned>(phase));
}

std::uint64_t mixed(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58'476d'1ce4'e5b9;
    word = (word ^ (word >> 27)) * 0x94d0'49bb'1331'11eb;
    return word ^ (word >> 31);
}

}  // namespace

Status open_from_environment(About about, std::string& problem) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    about.directory = environment::text("OFFPATH_TRACE", "");
    if (about.directory.empty() || on()) return Status::ok;
    about.most_bytes = environment::bytes("OFFPATH_TRACE_BYTES", about.most_bytes);
    if (const Status status = file().open(about, problem); status != Status::ok) return status;
    pthread_atfork(nullptr, nullptr, [] { is_on.store(false, std::memory_order_relaxed); });
    is_on.store(true, std::memory_order_release);
    return Status::ok;
}

std::uint16_t number_of(std::string_view text) {
    return on() ? file().name(text) : UINT16_MAX;
}

std::uint16_t Name::look_up() {
    const std::uint16_t number = number_of(text_);
    number_.store(number, std::memory_order_relaxed);
    return number;
}

void put(Kind kind, Phase phase, std::uint64_t time_ns, std::uint64_t id, std::uint64_t bytes,
         std::uint32_t other, std::uint16_t what) {
    Record* const record = room(1);
    if (record == nullptr) return;
    *record = {time_ns, id, bytes, other, what, joined(kind, phase)};
    cursor.polled = UINT16_MAX;
    written(1);
}

void put_now(Kind kind, Phase phase, std::uint64_t id, std::uint64_t bytes, std::uint32_t other,
             std::uint16_t what) {
    put(kind, phase, now_ns(), id, bytes, other, what);
}

void put_poll(std::uint64_t began_ns, std::uint16_t what) {
    const std::uint64_t ended_ns = now_ns();
    if (cursor.polled == what) {
        Record& last = reinterpret_cast<Record*>(cursor.chunk + 1)[cursor.records - 1];
        if (began_ns - last.time_ns < close_ns) {
            last.time_ns = ended_ns;
            ++last.id;
            return;
        }
    }
    Record* const record = room(2);
    if (record == nullptr) return;
    record[0] = {began_ns, 0, 0, 0, what, joined(Kind::call, Phase::begin)};
    record[1] = {ended_ns, 1, 0, 0, what, joined(Kind::call, Phase::end)};
    written(2);
    cursor.polled = what;
}

std::uint64_t id_of_start(std::uint64_t team, std::uint32_t rank, std::uint32_t sequence) {
    return mixed(mixed(team) ^ (std::uint64_t{rank} << 32 | sequence)) | 1;
}

std::uint64_t new_id() {
    static const auto process = static_cast<std::uint64_t>(getpid());
    static std::atomic<std::uint64_t> last{0};
    // Even, so that it is never that of a start.
    return 2 * (process << 40 | ++last);
}

}  // namespace offpath::trace
