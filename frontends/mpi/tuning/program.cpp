#include "program.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "signature.h"

namespace offpath::mpi {
namespace {

namespace fs = std::filesystem;

// So much of each end of a file counts. More would delay MPI_Init.
constexpr std::streamsize most_of_an_end = 32 << 20;

std::string content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return "";
    const std::streamoff size = file.tellg();
    std::string bytes = fmt::format("{}:", size);
    const auto add = [&](std::streamoff from, std::streamsize count) {
        const std::size_t at = bytes.size();
        bytes.resize(at + static_cast<std::size_t>(count));
        file.seekg(from);
        file.read(&bytes[at], count);
    };
    if (size <= 2 * most_of_an_end) {
        add(0, size);
    } else {
        add(0, most_of_an_end);
        add(size - most_of_an_end, most_of_an_end);
    }
    return digest(bytes);
}

constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + 3) / 4 * 4;
}

// The build ID among the notes of a program segment, in hexadecimal digits; empty if there is none.
std::string build_id_in(std::span<const unsigned char> notes) {
    constexpr std::string_view owner("GNU", 4);  // with its zero
    ElfW(Nhdr) note;
    while (notes.size() >= sizeof note) {
        std::memcpy(&note, notes.data(), sizeof note);
        notes = notes.subspan(sizeof note);
        const std::size_t name = rounded_up(note.n_namesz), content = rounded_up(note.n_descsz);
        if (notes.size() < name + content) break;
        const std::string_view named(reinterpret_cast<const char*>(notes.data()), note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && named == owner)
            return fmt::format("{:02x}", fmt::join(notes.subspan(name, note.n_descsz), ""));
        notes = notes.subspan(name + content);
    }
    return "";
}

// The linker's hash of this program's code and data. Empty if the program was linked without one.
std::string build_id() {
    std::string id;
    const auto find = [](dl_phdr_info* program, std::size_t, void* found) {
        const std::span segments(program->dlpi_phdr, program->dlpi_phnum);
        for (const ElfW(Phdr) & segment : segments) {
            if (segment.p_type != PT_NOTE) continue;
            const std::span notes(
                reinterpret_cast<const unsigned char*>(program->dlpi_addr + segment.p_vaddr),
                static_cast<std::size_t>(segment.p_memsz));
            const std::string in_notes = build_id_in(notes);
            if (!in_notes.empty()) *static_cast<std::string*>(found) = in_notes;
        }
        return 1;  // the first one is the program
    };
    dl_iterate_phdr(find, &id);
    return id;
}

// Reading a program of 16 MiB would take tens of milliseconds of every MPI_Init. So a build ID and the size
// stand for the content.
std::string content_of_program() {
    constexpr const char* program = "/proc/self/exe";
    const std::string id = build_id();
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(program, error);
    return id.empty() || error ? content_of(program) : fmt::format("{}-{}", id, bytes);
}

std::vector<std::string> arguments() {
    std::vector<std::string> found;
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    for (std::string one; std::getline(file, one, '\0');)
        found.push_back(one);
    return found;
}

// The script of an interpreter, or the words that name what it runs; empty for other programs.
struct Script {
    std::string name, content;
};
Script script_of(const fs::path& program) {
    if (!program.filename().string().starts_with("python")) return {};
    const std::vector<std::string> words = arguments();
    std::string before;
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (fs::is_regular_file(words[i])) return {fs::path(words[i]).filename(), content_of(words[i])};
        before += words[i] + '\0';
    }
    return {program.filename(), digest(before)};
}

fs::path program_path() {
    std::error_code none;
    return fs::read_symlink("/proc/self/exe", none);
}

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "processor";
}

// The different rates of the networks here, such as "25000 Mbit/s".
std::string networks() {
    std::set<std::string> rates;
    std::error_code none;
    for (const auto& device : fs::directory_iterator("/sys/class/net", none)) {
        const std::string rate = first_line(device.path() / "speed");
        if (!rate.empty() && rate[0] != '-') rates.insert(rate + " Mbit/s");
    }
    for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none))
        for (const auto& port : fs::directory_iterator(device.path() / "ports", none))
            rates.insert(first_line(port.path() / "rate"));
    return fmt::format("{}", fmt::join(rates, ", "));
}

}  // namespace

std::string program_name() {
    const fs::path program = program_path();
    const std::string script = script_of(program).name;
    return script.empty() ? program.filename().string() : script;
}

std::string program_content() {
    const fs::path program = program_path();
    const std::string script = script_of(program).content;
    return content_of_program() + (script.empty() ? "" : "+" + script);
}

std::string platform_in_words() {
    const bool remote = !environment::text("OFFPATH_DEVICES", "").empty();
    const std::string rates = networks();
    return fmt::format("{}, {} cores{}, {} devices", processor(), sysconf(_SC_NPROCESSORS_CONF),
                       rates.empty() ? "" : ", " + rates, remote ? "remote" : "local");
}

}  // namespace offpath::mpi
