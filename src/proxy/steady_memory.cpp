#include "proxy/steady_memory.h"

#include "base/thread_caches.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace offpath::proxy {
namespace {

using namespace thread_caches;

void restore(const std::string& users) {
    if (users.empty()) {
        unsetenv(variable);
    } else {
        setenv(variable, users.c_str(), 1);
    }
}

}  // namespace

void run_without_thread_caches(char** arguments) {
    // The loader takes the variable away from a program with more rights than its user, which would start
    // anew for ever.
    if (getauxval(AT_SECURE) != 0) return;
    constexpr std::string_view ours = off;
    const char* const set = std::getenv(variable);
    const std::string tunables = set != nullptr ? set : "";
    if (tunables == ours) return restore({});
    if (tunables.ends_with(fmt::format(":{}", off)))
        return restore(tunables.substr(0, tunables.size() - ours.size() - 1));
    if (tunables.find(name) != std::string::npos) return;
    // By its real name: the system shows the last part of it as the name of the process.
    std::error_code unknown;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    if (unknown) return;
    setenv(variable, (tunables.empty() ? off : tunables + ":" + off).c_str(), 1);
    execv(program.c_str(), arguments);
    restore(tunables);
}

}  // namespace offpath::proxy
