#include <mpi.h>

#include "summary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

#include "base/environment.h"
#include "runtime.h"

namespace offpath::mpi {
namespace {

// The format's version. A reader can rely on the keys of one version.
constexpr int summary_version = 1;

std::string path() {
    return environment::text("OFFPATH_SUMMARY", "");
}

nlohmann::json& sections() {
    static nlohmann::json object{{"version", summary_version}};
    return object;
}

}  // namespace

bool check_summary_file() {
    const std::string file = path();
    if (file.empty()) return false;
    const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        throw std::invalid_argument(fmt::format(
            "OFFPATH_SUMMARY={} cannot be written: {}; it takes the name of a file in a directory "
            "that exists",
            file, std::strerror(errno)));
    close(descriptor);
    return true;
}

void add_to_summary_file(const char* section, const nlohmann::json& values) {
    sections()[section] = values;
}

void write_summary_file() {
    std::ofstream file(path(), std::ios::trunc);
    file << sections().dump(1) << '\n';
    file.close();
    if (!file)
        warn(Code::file,
             fmt::format("OFFPATH_SUMMARY={} could not be written: {}", path(), std::strerror(errno)));
}

}  // namespace offpath::mpi
