#include "proxy/steady_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace offpath::proxy {
namespace {

constexpr const char* variable = "GLIBC_TUNABLES";
constexpr std::string_view name = "glibc.malloc.tcache_count";
constexpr std::string_view ours = "glibc.malloc.tcache_count=0";

void restore(const std::string& users) {
    if (users.empty()) {
        unsetenv(variable);
    } else {
        setenv(variable, users.c_str(), 1);
    }
}

}  // namespace

void run_without_thread_caches(char** arguments) {
    const char* const set = std::getenv(variable);
    std::string tunables = set != nullptr ? set : "";
    if (tunables == ours) return restore({});
    if (tunables.ends_with(ours) && tunables[tunables.size() - ours.size() - 1] == ':')
        return restore(tunables.substr(0, tunables.size() - ours.size() - 1));
    if (tunables.find(name) != std::string::npos) return;
    // By its real name: the system shows the last part of it as the name of the process.
    std::error_code unknown;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    if (unknown) return;
    const std::string users = tunables;
    if (!tunables.empty()) tunables += ':';
    setenv(variable, tunables.append(ours).c_str(), 1);
    execv(program.c_str(), arguments);
    restore(users);
}

}  // namespace offpath::proxy
