#include "minimd/report/outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "minimd/files/restart.h"
#include "minimd/files/shared_text.h"
#include "minimd/report/yaml.h"

namespace minimd {

namespace {

struct Named {
    std::string flag, path;
};

// Returns why the file cannot be written, or an empty string if it can. Pipes and devices are left alone:
// opening and closing one may end the program that reads it.
std::string problem_of(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    const bool there = std::filesystem::exists(status);
    if (there && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status))
        return "";
    constexpr mode_t everyone = 0666;
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | (there ? 0 : O_CREAT | O_EXCL), everyone);
    // A link whose target does not exist yet cannot be created exclusively.
    if (file < 0) return !there && errno == EEXIST ? "" : std::strerror(errno);
    close(file);
    return there || unlink(path.c_str()) == 0 ? "" : std::strerror(errno);
}

// A device or a pipe can be named twice without harm.
bool same_file(const std::string& a, const std::string& b) {
    std::error_code ignored;
    for (const std::string& path : {a, b})
        if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
            return false;
    // A path that does not exist yet has to be absolute for the comparison.
    const auto place = [&](const std::string& path) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
    };
    return place(a) == place(b);
}

std::vector<Named> outputs_of(const Settings& settings) {
    std::vector<Named> outputs;
    if (settings.json && !settings.quiet()) outputs.push_back({"--json", *settings.json});
    if (settings.dump) outputs.push_back({"--dump", *settings.dump});
    if (settings.restart_to) outputs.push_back({"--write-restart", *settings.restart_to});
    return outputs;
}

std::vector<Named> inputs_of(const Settings& settings) {
    std::vector<Named> inputs{{"-i", settings.input_file}};
    if (settings.data_file) inputs.push_back({"-f", *settings.data_file});
    if (settings.restart_from) inputs.push_back({"--restart", *settings.restart_from});
    if (settings.potential == Potential::eam) inputs.push_back({"--eam-file", settings.eam_file});
    return inputs;
}

std::string problem_of(const Settings& settings) {
    std::vector<Named> outputs = outputs_of(settings);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& [flag, path] = outputs[i];
        for (std::size_t j = 0; j < i; ++j)
            if (same_file(path, outputs[j].path))
                return flag + " and " + outputs[j].flag + " name the same file, '" + path + "'";
        for (const Named& input : inputs_of(settings)) {
            // A run may continue from the restart file that it replaces once the new one is complete.
            const bool replaces = flag == "--write-restart" && input.flag == "--restart";
            if (!replaces && same_file(path, input.path))
                return flag + " would overwrite '" + path + "', which this run reads (" + input.flag + ")";
        }
    }
    if (settings.restart_to) outputs.push_back({"--write-restart", partial_restart(*settings.restart_to)});
    if (settings.yaml_output != 0) outputs.push_back({"-o", yaml_name(std::time(nullptr))});
    for (const auto& [flag, path] : outputs) {
        const std::string problem = problem_of(path);
        if (!problem.empty())
            return flag + ": cannot write '" + path + "' (" + problem +
                   "): give a path in a folder that exists and is writable";
    }
    return "";
}

}  // namespace

void check_outputs(const Settings& settings, MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    throw_shared(rank == 0 ? problem_of(settings) : std::string(), comm);
}

}  // namespace minimd
