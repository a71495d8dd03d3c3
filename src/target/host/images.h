// Images: the shared libraries of the program, loaded into this process. An image is loaded once. It stays
// until the process ends. Threads: any.
#pragma once

#include "base/status.h"
#include "memory/file.h"
#include "target/image_name.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace offpath::target {

class Images {
  public:
    // Returns the image's module; 0: it has not been loaded.
    std::uint64_t find(const ImageName& name);
    // invalid, with `problem`: not a shared library of this machine, or a library or symbol that it needs is
    // missing here. Runs the image's constructors.
    Status load(const ImageName& name, memory::File file, std::uint64_t& module, std::string& problem);
    // Makes a sealed memory file of an image. memory, with `problem`: there is no room.
    static Status make_file(std::span<const std::byte> image, memory::File& file, std::string& problem);
    // The file of a loaded image, while no other image is loaded.
    const memory::File& file(std::uint64_t module) const { return files_.at(module); }
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
    std::map<ImageName, std::uint64_t> modules_;
    // Of images, by module. They stay open: the dynamic linker knows a library by its path, which names the
    // descriptor, and would take the next image at that path for this one.
    std::map<std::uint64_t, memory::File> files_;
    std::map<std::string, std::uint64_t> own_libraries_;  // by name
    std::vector<void*> libraries_;                        // by module - 1
    std::map<const void*, std::string> names_;
};

}  // namespace offpath::target
