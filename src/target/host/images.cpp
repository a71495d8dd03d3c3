#include "target/host/images.h"

#include "memory/file.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace offpath::target {
namespace {

#if defined(__x86_64__)
constexpr int machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int machine = EM_AARCH64;
#else
constexpr int machine = EM_NONE;
#endif

std::string machine_name(int number) {
    switch (number) {
        case EM_X86_64:
            return "x86-64";
        case EM_AARCH64:
            return "aarch64";
        default:
            return fmt::format("ELF machine {}", number);
    }
}

bool check(std::span<const std::byte> image, std::string& problem) {
    Elf64_Ehdr head;
    if (image.size() < sizeof head || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0) {
        problem = "the image is not an ELF file";
        return false;
    }
    std::memcpy(&head, image.data(), sizeof head);
    if (head.e_machine == machine && head.e_ident[EI_CLASS] == ELFCLASS64) return true;
    problem = fmt::format("the image is for {}, and this device is {}", machine_name(head.e_machine),
                          machine_name(machine));
    return false;
}

// dlopen names the image by its path here, which tells people nothing.
std::string loader_problem(const std::string& path) {
    std::string problem = dlerror();
    if (problem.starts_with(path + ": ")) problem.erase(0, path.size() + 2);
    return problem;
}

bool write_file(int fd, std::span<const std::byte> data) {
    while (!data.empty()) {
        const ssize_t written = write(fd, data.data(), data.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data = data.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

std::uint64_t Images::find(const Digest& digest) {
    std::lock_guard lock(mutex_);
    const auto found = modules_.find(digest);
    return found != modules_.end() ? found->second : 0;
}

Status Images::load(const Digest& digest, std::span<const std::byte> image, std::uint64_t& module,
                    std::string& problem) {
    module = find(digest);
    if (module != 0) return Status::ok;
    if (!check(image, problem)) return Status::invalid;
    const memory::File file(memfd_create("offpath-image", MFD_CLOEXEC));
    if (!file || !write_file(file.get(), image)) {
        problem = fmt::format("no room for the image: {}", std::strerror(errno));
        return Status::memory;
    }
    const std::string path = fmt::format("/proc/self/fd/{}", file.get());
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        problem = loader_problem(path);
        return Status::invalid;
    }
    std::lock_guard lock(mutex_);
    libraries_.push_back(library);
    module = libraries_.size();
    modules_[digest] = module;
    return Status::ok;
}

Status Images::load_library(const std::string& name, std::uint64_t& module, std::string& problem) {
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) {
        problem = "this is not the name of a library of the device";
        return Status::invalid;
    }
    std::lock_guard lock(mutex_);
    if (const auto found = own_libraries_.find(name); found != own_libraries_.end()) {
        module = found->second;
        return Status::ok;
    }
    const std::string file = fmt::format("liboffpath-{}.so", name);
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    const auto beside = folder / ".." / "lib" / file;
    void* const library = dlopen(std::filesystem::exists(beside, ignored) ? beside.c_str() : file.c_str(),
                                 RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        problem = dlerror();
        return Status::invalid;
    }
    libraries_.push_back(library);
    module = own_libraries_[name] = libraries_.size();
    return Status::ok;
}

void* Images::symbol(std::uint64_t module, const std::string& name) {
    std::lock_guard lock(mutex_);
    if (module == 0 || module > libraries_.size()) return nullptr;
    void* const address = dlsym(libraries_[module - 1], name.c_str());
    if (address != nullptr) names_.try_emplace(address, name);
    return address;
}

const char* Images::name_of(const void* address) {
    std::lock_guard lock(mutex_);
    const auto found = names_.find(address);
    return found != names_.end() ? found->second.c_str() : "a function";
}

}  // namespace offpath::target
