#include "link/plugin/plugin_loader.h"

#include "link/plugin/plugin_interface.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace offpath::link {
namespace {

void* open_at(const std::string& place, std::string& problem) {
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) problem = dlerror();
    return library;
}

void* open_library(std::string& problem) {
    Dl_info here{};
    if (dladdr(reinterpret_cast<void*>(&load_host_link), &here) != 0 && here.dli_fname != nullptr) {
        std::error_code unknown;  // This code's library or program may be found by a link.
        const auto directory = std::filesystem::canonical(here.dli_fname, unknown).parent_path();
        for (const auto& place : {directory / library_name, directory / ".." / "lib" / library_name})
            if (!unknown && std::filesystem::exists(place)) return open_at(place.string(), problem);
    }
    return open_at(library_name, problem);
}

template <typename Function>
Status find(const char* name, Function& function, std::string& problem) {
    std::string why;
    void* const library = open_library(why);
    if (library == nullptr) {
        problem = fmt::format("{}, which remote attach needs, cannot be loaded: {}", library_name, why);
        return Status::unavailable;
    }
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) return Status::ok;
    problem = fmt::format("{} is of another build: it lacks {}", library_name, name);
    return Status::version;
}

}  // namespace

Status load_host_link(const HostLinkOptions& options, std::unique_ptr<HostLink>& link, std::string& problem) {
    OpenFunction open = nullptr;
    const Status status = find(open_function_name, open, problem);
    return status == Status::ok ? open(sizeof options, options, link, problem) : status;
}

Status load_host_exporter(const std::string& devices, std::unique_ptr<memory::HostExporter>& exporter,
                          std::string& problem) {
    OpenExporterFunction open = nullptr;
    const Status status = find(open_exporter_function_name, open, problem);
    return status == Status::ok ? open(devices, exporter, problem) : status;
}

}  // namespace offpath::link
