#include "memory/plain_memory.h"

#include "memory/file.h"
#include "memory/huge_pages.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace offpath::memory {
namespace {

// Files of /dev behind which no driver keeps pages of the process.
constexpr auto harmless_devices = std::to_array<std::string_view>(
    {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts/",
     "/dev/ptmx", "/dev/console", "/dev/shm/", "/dev/mqueue/", "/dev/hugepages/", "/dev/fuse", "/dev/kmsg"});

bool may_pin_pages(std::string_view opened) {
    if (opened.starts_with("anon_inode:[io_uring]")) return true;
    return opened.starts_with("/dev/") &&
           std::ranges::none_of(harmless_devices,
                                [&](std::string_view harmless) { return opened.starts_with(harmless); });
}

// Flags in smaps (filesystems/proc in the kernel's documentation) that make no difference here: access
// rights, accounting, advice about huge pages.
bool is_plain_flag(std::string_view flag) {
    constexpr auto plain =
        std::to_array<std::string_view>({"rd", "wr", "mr", "mw", "me", "ac", "nr", "sd", "hg"});
    return std::ranges::find(plain, flag) != plain.end();
}

bool has_default_placement(std::uintptr_t address) {
    constexpr unsigned long by_address = 2;  // MPOL_F_ADDR
    int mode = 0;
    return syscall(SYS_get_mempolicy, &mode, nullptr, 0ul, address, by_address) != 0 || mode == 0;
}

// Whether the kernel makes huge pages of a memory file's on demand. Tried once, since versions differ.
bool memory_files_get_huge_pages() {
    static const bool can = [] {
        File file;
        Mapping mapping;
        if (make_memory_file("offpath-probe", huge_page_bytes, file) != Status::ok ||
            Mapping::map(file.get(), huge_page_bytes, mapping) != Status::ok)
            return false;
        mapping.populate();
        return HugePages(huge_page_bytes).make(reinterpret_cast<std::uintptr_t>(mapping.data())) == 0;
    }();
    return can;
}

bool gives_huge_pages_to_all() {
    std::string enabled;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), enabled);
    return enabled.find("[always]") != std::string::npos;
}

struct Mapped {
    std::uintptr_t begin = 0, end = 0;
    bool plain = false, huge = false;
};

// Reads the next mapping. False: there is none.
bool next_mapping(std::FILE* smaps, std::string& line, Mapped& found) {
    const auto read_line = [&] {
        line.resize(4096);
        if (std::fgets(line.data(), static_cast<int>(line.size()), smaps) == nullptr) return false;
        line.resize(std::strcspn(line.c_str(), "\n"));
        return true;
    };
    std::array<char, 5> rights{};
    unsigned long begin = 0, end = 0, inode = 0;
    int path_at = 0;
    if (!read_line()) return false;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu %n", &begin, &end, rights.data(), &inode,
                    &path_at) < 4)
        return false;
    const std::string_view path = std::string_view(line).substr(std::min<std::size_t>(path_at, line.size()));
    found = {begin, end, false, false};
    const bool named_well = path.empty() || path == "[heap]" || path.starts_with("[anon:");
    const bool anonymous = inode == 0 && named_well && std::string_view(rights.data()) == "rw-p";
    while (read_line()) {
        if (!line.starts_with("VmFlags:")) continue;
        found.plain = anonymous;
        for (std::string_view flags = std::string_view(line).substr(8); flags.size() >= 3;
             flags.remove_prefix(3)) {
            const std::string_view flag = flags.substr(1, 2);
            found.plain &= is_plain_flag(flag);
            found.huge |= flag == "hg";
        }
        return true;
    }
    return false;
}

}  // namespace

bool no_device_is_open() {
    std::error_code error;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const auto opened = std::filesystem::read_symlink(each.path(), error);
        if (!error && may_pin_pages(opened.native())) return false;
    }
    return true;
}

std::size_t page_of_plain_memory(std::uintptr_t begin, std::uintptr_t end) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> smaps(std::fopen("/proc/self/smaps", "re"),
                                                                std::fclose);
    if (!smaps || !has_default_placement(begin)) return 0;
    bool huge = gives_huge_pages_to_all();
    std::string line;
    std::uintptr_t known_to = begin;
    for (Mapped mapped; known_to < end && next_mapping(smaps.get(), line, mapped);) {
        if (mapped.end <= known_to) continue;
        if (mapped.begin > known_to || !mapped.plain) return 0;
        huge |= mapped.huge;
        known_to = mapped.end;
    }
    if (known_to < end) return 0;
    if (!huge) return page_bytes();
    return memory_files_get_huge_pages() ? huge_page_bytes : 0;
}

bool is_on_stack(std::uintptr_t address) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return true;
    void* begin = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
    return address - reinterpret_cast<std::uintptr_t>(begin) < bytes;
}

}  // namespace offpath::memory
