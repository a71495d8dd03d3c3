// Finds loaded libraries. For one that is not loaded, dlopen() would search all directories, with some 100
// failing system calls. They may be on a network. So the loaded libraries are looked through first.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string_view>

#include "drivers.h"

namespace offpath::mpi::gpu {
namespace {

// The name that the library gives itself; empty: none. The loader finds a loaded library by it.
std::string_view own_name(const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        ElfW(Addr) texts = 0, name = 0;
        bool named = false;
        const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
            if (entry->d_tag != DT_SONAME) continue;
            name = entry->d_un.d_val;
            named = true;
        }
        // Some loaders leave offsets in this table.
        if (texts < info.dlpi_addr) texts += info.dlpi_addr;
        return named ? reinterpret_cast<const char*>(texts + name) : std::string_view();
    }
    return {};
}

bool in_process(const char* name) {
    std::string_view wanted = name;
    return dl_iterate_phdr(
               [](dl_phdr_info* info, std::size_t, void* data) {
                   const std::string_view& sought = *static_cast<const std::string_view*>(data);
                   const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
                   const bool found =
                       path.substr(path.find_last_of('/') + 1) == sought || own_name(*info) == sought;
                   return found ? 1 : 0;
               },
               &wanted) != 0;
}

}  // namespace

Library::Library(const char* name)
    : handle_(in_process(name) ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr) {}

}  // namespace offpath::mpi::gpu
