#include "target/host/mapped_files.h"

#include "base/file_descriptor.h"
#include "memory/file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace offpath::target {
namespace {

bool same_file(const struct stat& facts, const MapFile& wanted) {
    return facts.st_dev == wanted.device && facts.st_ino == wanted.inode;
}

// The path leads through /proc, so the program may have ended and its number may be another process's. Look
// first, since opening some files has side effects.
bool open_file(pid_t program, const MapFile& wanted, FileDescriptor& file, std::string& problem) {
    const std::string path = fmt::format("/proc/{}/fd/{}", program, wanted.descriptor);
    struct stat facts {};
    if (stat(path.c_str(), &facts) == 0 && same_file(facts, wanted))
        file = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    const char* why = "it cannot be opened";
    if (file && fstat(file.get(), &facts) == 0 && same_file(facts, wanted) &&
        memory::check_memory_file(file.get(), wanted.bytes, why) == Status::ok)
        return true;
    problem = fmt::format("a memory file of the program: {}", why);
    return false;
}

}  // namespace

Status MappedFiles::map(pid_t program, const MapFile& wanted, std::uint64_t& address, std::string& problem) {
    if (program <= 0) return Status::unsupported;
    FileDescriptor file;
    if (wanted.bytes == 0 || !open_file(program, wanted, file, problem)) return Status::access;
    void* const place = reinterpret_cast<void*>(wanted.address);
    void* const made = mmap(place, wanted.bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | (place != nullptr ? MAP_FIXED_NOREPLACE : 0), file.get(), 0);
    if (made == MAP_FAILED || (place != nullptr && made != place)) {
        const bool taken = made != MAP_FAILED || errno == EEXIST;
        if (made != MAP_FAILED) munmap(made, wanted.bytes);
        problem = taken ? fmt::format("the device's process has memory of its own at {:#x}", wanted.address)
                        : fmt::format("{} bytes cannot be mapped: {}", wanted.bytes, std::strerror(errno));
        return taken ? Status::unavailable : Status::memory;
    }
    address = reinterpret_cast<std::uint64_t>(made);
    std::lock_guard lock(mutex_);
    files_[address] = {file.release(), wanted.bytes};
    return Status::ok;
}

bool MappedFiles::part(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = files_.find(address);
    if (found == files_.end()) return false;
    void* const place = reinterpret_cast<void*>(address);
    return mmap(place, found->second.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                found->second.descriptor, 0) == place;
}

bool MappedFiles::unmap(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = files_.find(address);
    if (found == files_.end()) return false;
    munmap(reinterpret_cast<void*>(address), found->second.bytes);
    const FileDescriptor closing(found->second.descriptor);
    files_.erase(found);
    return true;
}

}  // namespace offpath::target
