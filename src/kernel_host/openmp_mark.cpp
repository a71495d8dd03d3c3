#include "kernel_host/openmp_mark.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace offpath::kernel_host {

// The file's name has the process's number and its user's.
void remove_openmp_mark(pid_t pid) {
    const std::string name = fmt::format("__KMP_REGISTERED_LIB_{}_", pid);
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/dev/shm", error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        if (entry->path().filename().native().starts_with(name))
            std::filesystem::remove(entry->path(), ignored);
    }
}

}  // namespace offpath::kernel_host
