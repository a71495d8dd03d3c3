#include "switches.h"

#include <fmt/format.h>
#include <mpi.h>
#include <offpath/types.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/environment.h"
#include "job_settings.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

constexpr std::size_t longest_line = 1024;

// Distinguishes one content of the control file from the next. `there`: the file exists and belongs to this
// user.
struct Mark {
    bool there = false;
    std::int64_t seconds = 0, nanoseconds = 0;
    std::uint64_t inode = 0;

    bool operator==(const Mark&) const = default;
};

std::mutex switches_mutex;
Switch wanted;
Mark seen;
std::string control_file;
bool pcontrol = false;
bool refused = false;  // and said so

Mark look_at_control_file() {
    struct stat status {};
    if (control_file.empty() || stat(control_file.c_str(), &status) != 0) return {};
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return {};
    return {true, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino};
}

void want(OpSet ops) {
    if (tuning_settings.deterministic != 0) {
        if (!std::exchange(refused, true))
            warn(Code::setting,
                 "with OFFPATH_DETERMINISTIC=1 offloading cannot be switched while the program runs");
        return;
    }
    wanted = {wanted.number + 1, ops};
}

void read_control_file() {
    const Mark now = look_at_control_file();
    if (now == seen) return;
    seen = now;
    if (!now.there) return;
    std::string line;
    std::getline(std::ifstream(control_file), line);
    try {
        if (line.size() > longest_line) throw std::invalid_argument("the line is too long");
        want(parse_switch(line, runtime().settings.selection.ops));
    } catch (const std::invalid_argument& error) {
        warn(Code::setting, fmt::format("control file {} has no effect: {}", control_file, error.what()));
    }
}

}  // namespace

OpSet parse_switch(const std::string& text, OpSet settings) {
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    const std::string word = end == std::string::npos ? "" : text.substr(0, end + 1);
    if (word == "on") return settings;
    if (word == "off") return {};
    constexpr std::string_view list = "ops ";
    if (word.starts_with(list)) {
        const OpSet ops = parse_ops(word.substr(list.size()));
        return {ops.nonblocking & settings.nonblocking, ops.blocking & settings.blocking};
    }
    throw std::invalid_argument(fmt::format("'{}' is not known; accepted are on, off, and ops LIST", word));
}

void open_switches() {
    const std::lock_guard lock(switches_mutex);
    control_file = environment::text("OFFPATH_CONTROL", session_directory() + "/control");
    pcontrol = environment::flag("OFFPATH_PCONTROL", false);
    seen = look_at_control_file();
}

bool switch_offloading(const std::string& text) {
    if (!active() || tuning_settings.deterministic != 0) return false;
    try {
        const OpSet ops = parse_switch(text, runtime().settings.selection.ops);
        const std::lock_guard lock(switches_mutex);
        if (runtime().rank == 0) want(ops);
        return true;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

Switch wanted_switch() {
    const std::lock_guard lock(switches_mutex);
    read_control_file();
    return wanted;
}

}  // namespace offpath::mpi

extern "C" OFFPATH_API int MPI_Pcontrol(const int level, ...) {
    using namespace offpath::mpi;
    if (active() && runtime().rank == 0) {
        const std::lock_guard lock(switches_mutex);
        if (pcontrol && level == 0) want({});
        if (pcontrol && level == 1) want(runtime().settings.selection.ops);
    }
    return PMPI_Pcontrol(level);
}
