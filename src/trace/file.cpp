#include "trace/file.h"

#include "base/clock.h"
#include "base/file_size.h"
#include "trace/machine_clock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

namespace offpath::trace {
namespace {

template <std::size_t size>
void put_text(char (&to)[size], std::string_view from) {
    from.copy(to, size - 1);
}

std::uint64_t realtime_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

File::~File() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
}

// Takes the room on the disk now. Without it, a store into the mapping would end the process when the disk is
// full.
bool File::grow(std::uint64_t bytes) {
    struct stat about {};
    if (fstat(file_.get(), &about) != 0) return false;
    auto at = static_cast<std::uint64_t>(about.st_size);
    if (at >= bytes) return true;
    if (!is_file_size_allowed(bytes)) return false;
    int result = 0;
    do {
        result = fallocate(file_.get(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes - at));
    } while (result != 0 && errno == EINTR);
    if (result == 0) return true;
    if (errno != EOPNOTSUPP) return false;
    static constexpr std::array<char, 4096> zeros{};
    while (at < bytes) {
        const ssize_t wrote = pwrite(file_.get(), zeros.data(),
                                     std::min<std::size_t>(zeros.size(), bytes - at), static_cast<off_t>(at));
        if (wrote <= 0) return false;
        at += static_cast<std::uint64_t>(wrote);
    }
    return true;
}

Status File::open(const About& about, std::string& problem) {
    std::string path;
    const auto failed = [&](const std::string& what) {
        problem = fmt::format("no trace in {}: {}: {}", about.directory, what, std::strerror(errno));
        if (file_) unlink(path.c_str());
        file_.reset();
        return Status::system;
    };
    if (mkdir(about.directory.c_str(), 0777) != 0 && errno != EEXIST) return failed("mkdir");
    std::string name = fmt::format("{}/{}-{}-{}", about.directory, about.node, about.program, getpid());
    for (int other = 2; other < 100; ++other) {
        path = name + ".offtrace";
        file_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (file_ || errno != EEXIST) break;
        name = fmt::format("{}/{}-{}-{}.{}", about.directory, about.node, about.program, getpid(), other);
    }
    if (!file_) return failed("open");
    const std::uint64_t chunks = std::max<std::uint64_t>(1, about.most_bytes / chunk_bytes);
    bytes_ = header_bytes + chunks * chunk_bytes;
    if (!grow(header_bytes)) return failed("no room");
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (mapped == MAP_FAILED) return failed("mmap");
    memory_ = static_cast<std::byte*>(mapped);
    FileHeader& made = *new (memory_) FileHeader{};
    made.header_bytes = header_bytes;
    made.chunk_bytes = chunk_bytes;
    made.most_chunks = chunks;
    made.monotonic_ns = now_ns();
    made.realtime_ns = realtime_ns();
    made.process = static_cast<std::uint64_t>(getpid());
    made.rank = about.rank;
    made.ranks = about.ranks;
    put_text(made.boot, machine_clock());
    put_text(made.node, about.node);
    put_text(made.program, about.program);
    for (const char* kind : kind_names)
        this->name(kind);
    made.kinds = std::size(kind_names);
    std::atomic_ref(made.magic).store(magic, std::memory_order_release);
    return Status::ok;
}

ChunkHeader* File::take_chunk() {
    if (full_.load(std::memory_order_relaxed)) return drop();
    const std::lock_guard lock(mutex_);
    const std::uint64_t index = header().chunks;
    if (index == header().most_chunks || !grow(header_bytes + (index + 1) * chunk_bytes)) {
        full_.store(true, std::memory_order_relaxed);
        return drop();
    }
    std::byte* const place = memory_ + header_bytes + index * chunk_bytes;
    auto* const chunk = new (place) ChunkHeader{};
    chunk->thread = static_cast<std::uint64_t>(gettid());
    pthread_getname_np(pthread_self(), chunk->name, sizeof chunk->name);
    std::atomic_ref(header().chunks).store(index + 1, std::memory_order_release);
    return chunk;
}

ChunkHeader* File::drop() {
    std::atomic_ref(header().dropped).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

std::uint16_t File::name(std::string_view text) {
    const std::lock_guard lock(mutex_);
    char* const names = reinterpret_cast<char*>(memory_) + names_offset;
    std::uint16_t number = 0;
    std::size_t at = 0;
    for (; at < header().names_bytes; at += std::strlen(names + at) + 1, ++number)
        if (text == names + at) return number;
    if (at + text.size() + 1 > most_names_bytes) return UINT16_MAX;
    text.copy(names + at, text.size());
    names[at + text.size()] = '\0';
    header().names_bytes = static_cast<std::uint32_t>(at + text.size() + 1);
    return number;
}

}  // namespace offpath::trace
