// Images: the shared libraries that the program has sent, loaded into this process. An image that is sent
// again is found by its digest and not loaded twice. An image stays until the process ends. Threads: any.
#pragma once

#include "base/status.h"
#include "target/records.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace offpath::target {

class Images {
  public:
    // Returns the image's module; 0: it has not been loaded.
    std::uint64_t find(const Digest& digest);
    // invalid, with `problem`: not a shared library of this machine, or a library or symbol that it needs is
    // missing here. Runs the image's constructors.
    Status load(const Digest& digest, std::span<const std::byte> image, std::uint64_t& module,
                std::string& problem);
    // Loads liboffpath-NAME.so for images that are loaded later. invalid, with `problem`: there is no such
    // library here.
    Status load_library(const std::string& name, std::uint64_t& module, std::string& problem);
    // Null: there is no such module, or it has no such symbol.
    void* symbol(std::uint64_t module, const std::string& name);
    // Returns the name by which symbol() found the address, or "a function" for others. The name stays valid.
    // Safe in a signal handler only if no other thread looks symbols up.
    const char* name_of(const void* address);

  private:
    std::mutex mutex_;
    std::map<Digest, std::uint64_t> modules_;
    std::map<std::string, std::uint64_t> own_libraries_;  // by name
    std::vector<void*> libraries_;                        // by module - 1
    std::map<const void*, std::string> names_;
};

}  // namespace offpath::target
