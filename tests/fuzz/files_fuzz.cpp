// Files that a user gives to the programs: tuning tables, profiles, and miniMD's input, data, potential and
// restart files. A file is either taken or refused with a reason; a restart file is read through MPI-IO.
#include "input.h"
#include "minimd/domain/decomposition.h"
#include "minimd/files/restart.h"
#include "minimd/setup/data_file.h"
#include "minimd/setup/eam_file.h"
#include "minimd/setup/input_file.h"
#include "sim/profile/profile.h"
#include "support/mpi_program.h"
#include "tuning/table.h"

#include <mpi.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

using offpath::fuzz::Input;
using offpath::fuzz::require;

// A folder in memory, and MPI, as long as the process lives.
class Surroundings {
  public:
    Surroundings() : folder_("/dev/shm/offpath-fuzz-" + std::to_string(getpid())) {
        MPI_Init(nullptr, nullptr);
        std::filesystem::create_directory(folder_);
    }
    ~Surroundings() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        MPI_Finalize();
    }
    std::string write(const std::string& name, const std::string& text) const {
        const std::string path = folder_ + "/" + name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    const std::string& folder() const { return folder_; }

  private:
    const std::string folder_;
};

// The checksum of restart files, which a stranger can compute too.
std::uint64_t sum_of(const char* bytes, std::size_t count) {
    const auto mixed = [](std::uint64_t value) {
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
        value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
        return value ^ (value >> 31);
    };
    std::uint64_t state = 0x9e3779b97f4a7c15ull;
    for (std::size_t at = 0; at < count; at += sizeof state) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + at, sizeof word);
        state = mixed(state + word) + 0x9e3779b97f4a7c15ull;
    }
    return state;
}

// Makes a restart file of the text: the fields that every file has alike, the number of atoms if `counted`,
// and the checksums.
std::string as_restart(std::string text, bool counted) {
    constexpr std::size_t header = 128, record = 64;
    text.resize(header + (std::max(text.size(), header) - header) / record * record);
    const auto put = [&](std::size_t at, const auto& value) {
        std::memcpy(text.data() + at, &value, sizeof value);
    };
    text.replace(0, 8, "OFPMINMD");
    put(8, std::uint32_t{0x01020304});
    put(12, std::uint32_t{1});
    const std::uint64_t atoms = (text.size() - header) / record;
    if (counted) put(16, atoms);
    put(76, std::uint64_t{0});
    std::uint64_t sum = 0;
    for (std::size_t at = header; at < text.size(); at += record)
        sum += sum_of(text.data() + at, record);
    put(112, sum);
    put(120, sum_of(text.data(), 120));
    return text;
}

template <typename Error, typename Read>
void taken_or_refused(Read&& read) {
    try {
        read();
    } catch (const Error& error) {
        require(error.what()[0] != '\0', "a file was refused without a reason");
    }
}

void atoms_of(const Surroundings& around, const std::string& text, bool restart) {
    const std::string path = around.write("file", text);
    minimd::Settings settings;
    taken_or_refused<mpi_support::UsageError>([&] {
        std::vector<std::string> notes;
        const auto read = [&](auto& file, auto&&... more) {
            require(file.atoms() >= 0, "a number of atoms below zero");
            const minimd::Decomposition decomposition(MPI_COMM_SELF, file.box());
            (void)file.read(decomposition, more...);
        };
        if (restart) {
            minimd::RestartFile file(path, settings, MPI_COMM_SELF);
            read(file);
        } else {
            minimd::DataFile file(path, MPI_COMM_SELF);
            read(file, notes);
        }
    });
}

}  // namespace

// MPI keeps memory until the process ends. Options in the environment do not count here.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
    return 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Surroundings around;
    Input input(data, size);
    const auto which = input.take<std::uint8_t>();
    const auto bytes = input.bytes(size);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::istringstream stream(text);
    switch (which % 8) {
        case 0:
            taken_or_refused<std::invalid_argument>([&] { (void)offpath::mpi::Table::parse(text); });
            break;
        case 1:
            around.write("rank-0.json", text);
            taken_or_refused<offpath::sim::ProfileError>(
                [&] { (void)offpath::sim::read_profile(around.folder()); });
            break;
        case 2: {
            minimd::Settings settings;
            taken_or_refused<mpi_support::UsageError>(
                [&] { minimd::parse_input(stream, "input", settings); });
            break;
        }
        case 3:
            taken_or_refused<mpi_support::UsageError>(
                [&] { (void)minimd::parse_funcfl(stream, "potential"); });
            break;
        case 4:
            atoms_of(around, text, false);
            break;
        case 5:
            atoms_of(around, text, true);
            break;
        default:
            atoms_of(around, as_restart(text, which % 8 == 6), true);
    }
    return 0;
}
