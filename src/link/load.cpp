#include "link/load.h"

#include "link/entry.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace offpath::link {
namespace {

void* open_library(std::string& problem) {
    Dl_info here{};
    std::vector<std::string> places;
    if (dladdr(reinterpret_cast<void*>(&load_host_link), &here) != 0 && here.dli_fname != nullptr) {
        const auto directory = std::filesystem::path(here.dli_fname).parent_path();
        places.push_back((directory / library_name).string());
        places.push_back((directory / ".." / "lib" / library_name).string());
    }
    places.emplace_back(library_name);
    for (const std::string& place : places) {
        if (place != library_name && !std::filesystem::exists(place)) continue;
        if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
        problem = dlerror();
    }
    return nullptr;
}

}  // namespace

Status load_host_link(const HostLinkOptions& options, std::unique_ptr<HostLink>& link, std::string& problem) {
    std::string why;
    void* const library = open_library(why);
    if (library == nullptr) {
        problem = fmt::format("{}, which remote attach needs, cannot be loaded: {}", library_name, why);
        return Status::unavailable;
    }
    const auto open = reinterpret_cast<OpenFunction>(dlsym(library, open_function_name));
    if (open == nullptr) {
        problem = fmt::format("{} is of another build: it lacks {}", library_name, open_function_name);
        return Status::version;
    }
    return open(sizeof options, options, link, problem);
}

}  // namespace offpath::link
