// minimd_batch FILE: many runs of minimd in one job, because starting a job takes longer than most of the
// runs. A line of FILE has a run's arguments. Words NAME=VALUE before them are its environment. The program
// ends with the first run that fails.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "command_line/command_line.h"
#include "minimd/program.h"
#include "support/mpi_program.h"

namespace {

using namespace minimd;

class Environment {
  public:
    void set(const std::string& word) {
        const std::size_t at = word.find('=');
        names_.push_back(word.substr(0, at));
        setenv(names_.back().c_str(), word.c_str() + at + 1, 1);
    }
    ~Environment() {
        for (const std::string& name : names_)
            unsetenv(name.c_str());
    }

  private:
    std::vector<std::string> names_;
};

int run(const std::string& line, const mpi_support::World& world) {
    if (world.rank == 0) std::printf("== %s\n", line.c_str());
    Environment environment;
    std::istringstream text(line);
    std::vector<std::string> words{"minimd"};
    for (std::string word; text >> word;) {
        if (words.size() == 1 && word.front() != '-') {
            environment.set(word);
        } else {
            words.push_back(word);
        }
    }
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    cli::App app("a run of a batch", "minimd");
    const CommandLine command_line(app);
    std::vector<char*> dashed = with_double_dashes(static_cast<int>(words.size()), arguments.data());
    app.parse(static_cast<int>(dashed.size()) - 1, dashed.data());
    const int code = run_program(command_line);
    std::fflush(stdout);
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    cli::App app("Runs of minimd in one job", "minimd_batch");
    std::string file;
    app.add_option("FILE", file)->required();
    return mpi_support::run_mpi_program(argc, argv, app, [&](const mpi_support::World& world) {
        std::ifstream lines(file);
        int code = lines ? 0 : 2;
        for (std::string line; code == 0 && std::getline(lines, line);)
            if (!line.empty()) code = run(line, world);
        return code;
    });
}
