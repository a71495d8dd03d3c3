#include "signature_file.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/clock.h"
#include "base/environment.h"
#include "base/file_descriptor.h"
#include "job_settings.h"
#include "program.h"
#include "runtime/runtime.h"

namespace offpath::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_file_bytes = 1U << 20;

std::vector<LearnedRow> from_earlier;
// Of rank 0.
std::mutex learned_mutex;
std::vector<LearnedRow> learned;
Signature signature;
fs::path file;               // empty: nothing is kept
bool is_named = false;       // the user has named the directory, so errors are worth a warning
bool is_of_another = false;  // the file belongs to another user

// Empty: signatures are off.
fs::path directory() {
    const std::string given = environment::text("OFFPATH_SIGNATURES", "off");
    if (given == "off" || tuning_settings.first_trial_after == 0 || runtime().settings.selection.given)
        return {};
    is_named = given != "on";
    if (is_named) return given;
    const std::string cache = environment::text("XDG_CACHE_HOME", ""), home = environment::text("HOME", "");
    if (cache.empty() && home.empty()) return {};
    return (cache.empty() ? fs::path(home) / ".cache" : fs::path(cache)) / "offpath" / "signatures";
}

std::string mpi_in_words() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(text, &length);
    std::string words;
    for (const char c : std::string(text).substr(0, std::strcspn(text, ",\n")))
        if (c != '\t' && (c != ' ' || (!words.empty() && words.back() != ' '))) words += c;
    return words;
}

std::uint32_t node_count() {
    const std::vector<int>& nodes = runtime().node_of;
    return static_cast<std::uint32_t>(std::set<int>(nodes.begin(), nodes.end()).size());
}

// Throws std::invalid_argument where there is a file that cannot be used.
std::vector<LearnedRow> read_rows() {
    const FileDescriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (descriptor.get() < 0) {
        if (errno == ENOENT) return {};
        throw std::invalid_argument(std::strerror(errno));
    }
    struct stat status {};
    fstat(descriptor.get(), &status);
    is_of_another = status.st_uid != geteuid();
    if (is_of_another) throw std::invalid_argument("it belongs to another user");
    if (!S_ISREG(status.st_mode)) throw std::invalid_argument("it is no file");
    std::string text(most_file_bytes, '\0');
    const ssize_t got = read(descriptor.get(), text.data(), text.size());
    if (got < 0) throw std::invalid_argument(std::strerror(errno));
    text.resize(static_cast<std::size_t>(got));
    Signature found = Signature::parse(text);
    if (found.key.id() != signature.key.id())
        throw std::invalid_argument("it is of another program, job or machine");
    signature.runs = found.runs;
    return found.rows;
}

void open_on_rank_0() {
    const fs::path where = directory();
    if (where.empty()) return;
    signature.key = {program_name(),
                     program_content(),
                     mpi_in_words(),
                     platform_in_words(),
                     static_cast<std::uint32_t>(runtime().size),
                     node_count()};
    file = where / (signature.key.id() + ".json");
    try {
        from_earlier = read_rows();
    } catch (const std::invalid_argument& error) {
        warn(Code::file, fmt::format("signature {} is ignored: {}", file.string(), error.what()));
    }
}

// Returns what is wrong; empty: nothing.
std::string write_to_file(const std::string& text) {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    const fs::path beside =
        file.parent_path() / fmt::format(".{}.{:x}.{}", file.filename().string(), now_ns(), getpid());
    FileDescriptor descriptor(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) return std::strerror(errno);
    const ssize_t wrote = write(descriptor.get(), text.data(), text.size());
    const bool whole = wrote == static_cast<ssize_t>(text.size());
    if (whole && rename(beside.c_str(), file.c_str()) == 0) return {};
    const std::string problem = wrote >= 0 && !whole ? "no room" : std::strerror(errno);
    unlink(beside.c_str());
    return problem;
}

}  // namespace

void read_signature() {
    static_assert(std::is_trivially_copyable_v<LearnedRow>);
    if (tuning_settings.first_trial_after == 0) return;
    if (runtime().rank == 0) open_on_rank_0();
    std::uint64_t count = from_earlier.size();
    PMPI_Bcast(&count, 1, MPI_UINT64_T, 0, runtime().service);
    from_earlier.resize(count);
    if (count > 0)
        PMPI_Bcast(from_earlier.data(), static_cast<int>(count * sizeof(LearnedRow)), MPI_BYTE, 0,
                   runtime().service);
}

std::span<const LearnedRow> remembered_rows() {
    return from_earlier;
}

void remember(const std::vector<LearnedRow>& rows) {
    if (file.empty()) return;
    const std::lock_guard lock(learned_mutex);
    for (const LearnedRow& row : rows)
        put(learned, row, true);
}

void write_signature() {
    if (file.empty() || is_of_another || learned.empty()) return;
    signature.rows = from_earlier;
    for (const LearnedRow& row : learned)
        put(signature.rows, row, false);
    ++signature.runs;
    const std::string problem = write_to_file(
        signature.to_json(fmt::format("{:%Y-%m-%dT%H:%M:%S}+00:00", fmt::gmtime(std::time(nullptr)))));
    if (!problem.empty() && is_named)
        warn(Code::file, fmt::format("signature {} could not be written: {}", file.string(), problem));
}

}  // namespace offpath::mpi
