#include "minimd/setup/data_file.h"

#include <array>
#include <sstream>
#include <unordered_map>

#include "minimd/files/distribution.h"
#include "minimd/files/shared_text.h"
#include "minimd/setup/data_sections.h"
#include "support/mpi_program.h"

namespace minimd {

namespace {

enum class Chunk : int { atoms, velocities, end };

constexpr std::size_t chunk_records = 16384;

// Keeps the atoms that belong to this rank.
class Keeper {
  public:
    Keeper(const Decomposition& decomposition, AtomList& atoms)
        : decomposition_(decomposition), owners_(decomposition), atoms_(atoms) {}

    void take(Chunk kind, const std::vector<AtomRecord>& records) {
        for (const AtomRecord& record : records) {
            if (kind == Chunk::velocities) {
                const auto mine = index_.find(record.id);
                if (mine != index_.end()) atoms_.v[mine->second] = record.v;
                continue;
            }
            AtomRecord inside = record;
            inside.x = wrapped(record.x, decomposition_.box());
            if (owners_.of(inside.x) != decomposition_.rank()) continue;
            index_.emplace(record.id, atoms_.size());
            append(atoms_, inside);
        }
    }

  private:
    const Decomposition& decomposition_;
    Owners owners_;
    AtomList& atoms_;
    std::unordered_map<std::int64_t, std::size_t> index_;
};

// Passes the chunks that rank 0 reads to every rank.
class Chunks {
  public:
    Chunks(MPI_Comm comm, Keeper& keeper) : comm_(comm), keeper_(keeper) {}

    // Called on rank 0.
    void add(Chunk kind, const AtomRecord& record) {
        if (kind != kind_ || records_.size() == chunk_records) flush();
        kind_ = kind;
        records_.push_back(record);
    }
    void flush() {
        if (!records_.empty()) share();
        records_.clear();
    }
    void end() {
        kind_ = Chunk::end;
        records_.clear();
        share();
    }

    // Called on the other ranks.
    void receive() {
        while (share() != Chunk::end) {
        }
    }

  private:
    Chunk share() {
        std::array<int, 2> head{static_cast<int>(kind_), static_cast<int>(records_.size())};
        MPI_Bcast(head.data(), 2, MPI_INT, 0, comm_);
        records_.resize(static_cast<std::size_t>(head[1]));
        MPI_Bcast(records_.data(), head[1], type_.get(), 0, comm_);
        kind_ = static_cast<Chunk>(head[0]);
        keeper_.take(kind_, records_);
        return kind_;
    }

    MPI_Comm comm_;
    Keeper& keeper_;
    RecordType type_;
    Chunk kind_ = Chunk::atoms;
    std::vector<AtomRecord> records_;
};

double volume(const Vec3& box) {
    return box[0] * box[1] * box[2];
}

}  // namespace

DataFile::DataFile(const std::string& path, MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    std::string error;
    if (rank_ == 0) {
        try {
            stream_.open(path);
            if (!stream_ || (stream_.peek() == std::ifstream::traits_type::eof() && stream_.bad()))
                throw mpi_support::UsageError("cannot read the data file '" + path + "'");
            lines_ = std::make_unique<LineSource>(stream_, path);
            header_ = read_data_header(*lines_);
        } catch (const mpi_support::UsageError& wrong) {
            error = wrong.what();
        }
    }
    throw_shared(error, comm);
    MPI_Bcast(&header_, static_cast<int>(sizeof header_), MPI_BYTE, 0, comm);
    for (std::size_t d = 0; d < 3; ++d)
        system_.box[d] = header_.hi[d] - header_.lo[d];
    system_.atoms = header_.atoms;
    system_.types = header_.types;
    system_.density = static_cast<double>(header_.atoms) / volume(system_.box);
}

System DataFile::read(const Decomposition& decomposition, std::vector<std::string>& notes) {
    System system = system_;
    Keeper keeper(decomposition, system.local);
    Chunks chunks(comm_, keeper);
    std::string error, skipped;
    if (rank_ == 0) {
        try {
            const DataContents contents = read_data_sections(
                *lines_, header_, [&](const AtomRecord& record) { chunks.add(Chunk::atoms, record); },
                [&](const AtomRecord& record) { chunks.add(Chunk::velocities, record); });
            chunks.flush();
            if (contents.mass) system.mass = *contents.mass;
            for (const std::string& line : contents.skipped)
                skipped += line + "\n";
        } catch (const mpi_support::UsageError& wrong) {
            error = wrong.what();
        }
        chunks.end();
    } else {
        chunks.receive();
    }
    throw_shared(error, comm_);
    MPI_Bcast(&system.mass, 1, MPI_DOUBLE, 0, comm_);
    std::istringstream all(shared_string(skipped, comm_));
    for (std::string line; std::getline(all, line);)
        notes.push_back(line);
    return system;
}

}  // namespace minimd
