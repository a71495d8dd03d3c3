#include "runtime/kept_components.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace offpath::mpi {

void keep_components() {
    std::vector<std::string> loaded;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
            const std::string_view path = object->dlpi_name;
            if (path.substr(path.rfind('/') + 1).starts_with("mca_"))
                static_cast<std::vector<std::string>*>(to)->emplace_back(path);
            return 0;
        },
        &loaded);
    for (const std::string& path : loaded)
        dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace offpath::mpi
