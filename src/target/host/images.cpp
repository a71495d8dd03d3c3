#include "target/host/images.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
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

bool check(int image, std::string& problem) {
    Elf64_Ehdr head;
    if (pread(image, &head, sizeof head, 0) != sizeof head ||
        std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
        problem = "the image is not an ELF file";
        return false;
    }
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

std::uint64_t Images::find(const ImageName& name) {
    std::lock_guard lock(mutex_);
    const auto found = modules_.find(name);
    return found != modules_.end() ? found->second : 0;
}

Status Images::make_file(std::span<const std::byte> image, memory::File& file, std::string& problem) {
    memory::File made(memfd_create("offpath-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    constexpr int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (!made || !write_file(made.get(), image) || fcntl(made.get(), F_ADD_SEALS, seals) != 0) {
        problem = fmt::format("no room for the image: {}", std::strerror(errno));
        return Status::memory;
    }
    file = std::move(made);
    return Status::ok;
}

Status Images::load(const ImageName& name, memory::File file, std::uint64_t& module, std::string& problem) {
    module = find(name);
    if (module != 0) return Status::ok;
    if (!check(file.get(), problem)) return Status::invalid;
    const std::string path = fmt::format("/proc/self/fd/{}", file.get());
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        problem = loader_problem(path);
        return Status::invalid;
    }
    std::lock_guard lock(mutex_);
    libraries_.push_back(library);
    module = libraries_.size();
    modules_[name] = module;
    files_[module] = std::move(file);
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
