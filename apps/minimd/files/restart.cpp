#include "minimd/files/restart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "minimd/files/distribution.h"
#include "minimd/files/shared_file.h"
#include "minimd/files/shared_text.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

constexpr char magic[8] = {'O', 'F', 'P', 'M', 'I', 'N', 'M', 'D'};
constexpr std::uint32_t order_mark = 0x01020304, foreign_order_mark = 0x04030201;
constexpr std::uint32_t version = 1;

struct Header {
    char magic[8];
    std::uint32_t order, version;
    std::int64_t atoms, step;
    Vec3 box;
    double mass, density;
    std::int32_t types, units, potential, zero;
    std::uint64_t spare[3];
    std::uint64_t records_sum;
    std::uint64_t header_sum;  // checksum of all bytes before it
};
static_assert(sizeof(Header) == 128);
constexpr auto header_bytes = static_cast<std::int64_t>(sizeof(Header));
constexpr auto record_bytes = static_cast<std::int64_t>(sizeof(AtomRecord));

// Makes every bit depend on every other one, like the end of splitmix64.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

std::uint64_t sum_of(const void* data, std::size_t bytes) {
    std::uint64_t state = 0x9e3779b97f4a7c15ull;
    for (std::size_t at = 0; at < bytes; at += sizeof state) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(data) + at, sizeof word);
        state = mixed(state + word) + 0x9e3779b97f4a7c15ull;
    }
    return state;
}

// The sum of the records' checksums does not depend on their order, so ranks can share the work.
std::uint64_t sum_of_all(const std::vector<AtomRecord>& records, MPI_Comm comm) {
    std::uint64_t sum = 0;
    for (const AtomRecord& record : records)
        sum += sum_of(&record, sizeof record);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, comm);
    return sum;
}

const char* name_of(Units units) {
    return units == Units::lj ? "lj" : "metal";
}
const char* name_of(Potential potential) {
    return potential == Potential::lj ? "lj" : "eam";
}

// Whether a simulation can have these values. A checksum shows damage; it does not show who wrote the file.
bool is_possible(const Header& header) {
    const auto above_0 = [](double value) { return std::isfinite(value) && value > 0; };
    return header.atoms >= 1 &&
           header.atoms <= (std::numeric_limits<std::int64_t>::max() - header_bytes) / record_bytes &&
           header.types >= 1 && header.step >= 0 && std::ranges::all_of(header.box, above_0) &&
           above_0(header.mass) && std::isfinite(header.density) && header.density >= 0;
}

bool is_possible(const AtomRecord& record, std::int64_t id, const System& system) {
    bool inside = true;
    for (std::size_t d = 0; d < 3; ++d)
        inside = inside && record.x[d] >= 0 && record.x[d] < system.box[d] && std::isfinite(record.v[d]);
    return inside && record.id == id && record.type >= 0 && record.type < system.types;
}

std::string problem_of(const Header& header, const Settings& settings, std::uintmax_t file_bytes) {
    if (std::memcmp(header.magic, magic, sizeof magic) != 0) return "it is no restart file of minimd";
    if (header.order == foreign_order_mark) return "it was written by a machine with another order of bytes";
    if (header.version != version)
        return "it has version " + std::to_string(header.version) + " of the format, expected " +
               std::to_string(version);
    if (header.order != order_mark || header.header_sum != sum_of(&header, offsetof(Header, header_sum)) ||
        !is_possible(header))
        return "its header is damaged";
    const auto expected = static_cast<std::uintmax_t>(header_bytes + header.atoms * record_bytes);
    if (file_bytes != expected)
        return "it has " + std::to_string(file_bytes) + " bytes, but its " + std::to_string(header.atoms) +
               " atoms need " + std::to_string(expected);
    const auto units = static_cast<Units>(header.units);
    const auto potential = static_cast<Potential>(header.potential);
    if (units != settings.units || potential != settings.potential)
        return std::string("it was written with units ") + name_of(units) + " and force " +
               name_of(potential) + ", this run has " + name_of(settings.units) + " and " +
               name_of(settings.potential);
    return "";
}

// Called on rank 0.
std::string read_header(const std::string& path, const Settings& settings, Header& header) {
    std::ifstream file(path, std::ios::binary);
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
    if (!file || failed) return "it cannot be opened";
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header))
        return "it has " + std::to_string(bytes) + " bytes, its header alone " +
               std::to_string(sizeof header);
    return problem_of(header, settings, bytes);
}

void rename_on_rank_0(const std::string& from, const std::string& to, MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::string error;
    if (rank == 0 && std::rename(from.c_str(), to.c_str()) != 0)
        error = "cannot write '" + to + "': " + std::strerror(errno);
    throw_shared(error, comm);
}

}  // namespace

std::string partial_restart(const std::string& path) {
    return path + ".partial";
}

void write_restart(const std::string& path, const Settings& settings, const System& system, MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::vector<AtomRecord> records = in_id_order(system.local, system.atoms, system.box, comm);

    Header header{};
    std::memcpy(header.magic, magic, sizeof magic);
    header.order = order_mark;
    header.version = version;
    header.atoms = system.atoms;
    header.step = system.step;
    header.box = system.box;
    header.mass = system.mass;
    header.density = system.density;
    header.types = system.types;
    header.units = static_cast<std::int32_t>(settings.units);
    header.potential = static_cast<std::int32_t>(settings.potential);
    header.records_sum = sum_of_all(records, comm);
    header.header_sum = sum_of(&header, offsetof(Header, header_sum));

    const std::string partial = partial_restart(path);
    SharedFile file(comm, partial, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    file.resize(header_bytes + system.atoms * record_bytes);
    if (rank == 0) file.write(0, &header, header_bytes);
    file.write(header_bytes + (ids_of(rank, ranks, system.atoms).first - 1) * record_bytes, records.data(),
               static_cast<std::int64_t>(records.size()) * record_bytes);
    file.finish("write");
    rename_on_rank_0(partial, path, comm);
}

RestartFile::RestartFile(const std::string& path, const Settings& settings, MPI_Comm comm)
    : path_(path), comm_(comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    Header header{};
    std::string error;
    if (rank == 0) error = read_header(path, settings, header);
    throw_shared(error.empty() ? error : "cannot go on from '" + path + "': " + error, comm);
    MPI_Bcast(&header, static_cast<int>(header_bytes), MPI_BYTE, 0, comm);
    system_.box = header.box;
    system_.atoms = header.atoms;
    system_.types = header.types;
    system_.mass = header.mass;
    system_.density = header.density;
    system_.step = header.step;
    checksum_ = header.records_sum;
}

System RestartFile::read(const Decomposition& decomposition) const {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &ranks);
    const IdRange ids = ids_of(rank, ranks, system_.atoms);
    std::vector<AtomRecord> records(static_cast<std::size_t>(ids.last - ids.first));
    SharedFile file(comm_, path_, MPI_MODE_RDONLY);
    file.read(header_bytes + (ids.first - 1) * record_bytes, records.data(),
              static_cast<std::int64_t>(records.size()) * record_bytes);
    file.finish("read");
    int damaged = 0;
    for (std::size_t i = 0; i < records.size(); ++i)
        if (!is_possible(records[i], ids.first + static_cast<std::int64_t>(i), system_)) damaged = 1;
    MPI_Allreduce(MPI_IN_PLACE, &damaged, 1, MPI_INT, MPI_MAX, comm_);
    if (sum_of_all(records, comm_) != checksum_ || damaged != 0)
        throw mpi_support::UsageError("cannot go on from '" + path_ + "': its atoms are damaged");

    const Owners owners(decomposition);
    std::vector<int> destinations;
    destinations.reserve(records.size());
    for (const AtomRecord& record : records)
        destinations.push_back(owners.of(record.x));
    System system = system_;
    for (const AtomRecord& record : exchanged(records, destinations, comm_))
        append(system.local, record);
    return system;
}

}  // namespace minimd
