// Error messages of failed calls. The name of the call is looked up on the stack, so a call that succeeds
// costs nothing extra.
#include "job_end.h"
#include "world.h"

#include "core.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string_view>

namespace offpath::shmem {

namespace {

bool is_public(std::string_view name) {
    for (const std::string_view prefix : {"shmem", "pshmem", "start_pes", "shfree", "shmalloc", "shrealloc"})
        if (name.starts_with(prefix)) return true;
    return false;
}

// Returns the outermost frame in this library with a name from shmem.h, or an empty string if there is none.
std::string call_on_the_stack() {
    std::array<void*, 48> frames{};
    const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
    Dl_info own{};
    dladdr(reinterpret_cast<const void*>(&is_public), &own);
    std::string call;
    for (int i = 0; i < depth; ++i) {
        Dl_info info{};
        // The return address may lie behind the end of a function that calls one that does not return.
        const auto* address = static_cast<const char*>(frames[static_cast<std::size_t>(i)]) - 1;
        if (dladdr(address, &info) == 0 || info.dli_fbase != own.dli_fbase || info.dli_sname == nullptr)
            continue;
        if (is_public(info.dli_sname)) call = info.dli_sname;
    }
    // A function has two names; programs know the one without "p".
    return call.starts_with("pshmem") ? call.substr(1) : call;
}

}  // namespace

void complain(const std::string& text, Code code) {
    const std::string call = call_on_the_stack();
    const std::string who = world.pes > 0 ? fmt::format("PE {}: ", world.pe) : std::string();
    const std::string line =
        fmt::format("offpath: {}{}{}{}\n", who, call, call.empty() ? "" : ": ", with_code(text, code));
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
}

void complain_for_all(const std::string& text, Code code) {
    if (world.pe == 0) complain(text, code);
}

void fail(const std::string& text, Code code) {
    complain(text, code);
    end_job(1);
}

void fail(const std::string& text) {
    fail(text, Code::shmem_call);
}

}  // namespace offpath::shmem
