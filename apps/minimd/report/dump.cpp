#include "minimd/report/dump.h"

#include <charconv>
#include <utility>
#include <vector>

#include "minimd/files/distribution.h"
#include "minimd/files/shared_file.h"

namespace minimd {

namespace {

constexpr int digits = 10;

void add(std::string& text, double value, int precision = digits) {
    char buffer[32];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, precision).ptr;
    text.append(buffer, end);
}

void add(std::string& text, std::int64_t value) {
    char buffer[24];
    text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void add(std::string& text, const Vec3& vector) {
    for (const double component : vector) {
        text += ' ';
        add(text, component);
    }
}

constexpr int exact = 17;

std::string xyz_head(const System& system, std::int64_t step, double time) {
    std::string text;
    add(text, system.atoms);
    text += "\nLattice=\"";
    for (std::size_t d = 0; d < 3; ++d)
        for (std::size_t e = 0; e < 3; ++e) {
            if (d + e > 0) text += ' ';
            add(text, d == e ? system.box[d] : 0.0, exact);
        }
    text += "\" Origin=\"0 0 0\" Properties=species:S:1:pos:R:3:velo:R:3:id:I:1:type:I:1 Step=";
    add(text, step);
    text += " Time=";
    add(text, time);
    return text + " pbc=\"T T T\"\n";
}

std::string lammps_head(const System& system, std::int64_t step) {
    std::string text = "ITEM: TIMESTEP\n";
    add(text, step);
    text += "\nITEM: NUMBER OF ATOMS\n";
    add(text, system.atoms);
    text += "\nITEM: BOX BOUNDS pp pp pp\n";
    for (const double length : system.box) {
        text += "0 ";
        add(text, length, exact);
        text += '\n';
    }
    return text + "ITEM: ATOMS id type x y z vx vy vz\n";
}

}  // namespace

DumpFile::DumpFile(std::string path, std::string species, double timestep, MPI_Comm comm)
    : path_(std::move(path)),
      species_(std::move(species)),
      format_(dump_format_of(path_).value_or(DumpFormat::xyz)),
      timestep_(timestep),
      comm_(comm) {}

void DumpFile::append(const System& system, std::int64_t step) {
    int rank = 0;
    MPI_Comm_rank(comm_, &rank);
    const std::vector<AtomRecord> records = in_id_order(system.local, system.atoms, system.box, comm_);
    std::string text;
    if (rank == 0)
        text = format_ == DumpFormat::xyz ? xyz_head(system, step, timestep_ * static_cast<double>(step))
                                          : lammps_head(system, step);
    constexpr std::size_t usual_line = 100;
    text.reserve(text.size() + records.size() * usual_line);
    for (const AtomRecord& record : records) {
        if (format_ == DumpFormat::xyz) {
            text += species_;
            add(text, record.x);
            add(text, record.v);
            text += ' ';
            add(text, record.id);
            text += ' ';
            add(text, std::int64_t{record.type} + 1);
        } else {
            add(text, record.id);
            text += ' ';
            add(text, std::int64_t{record.type} + 1);
            add(text, record.x);
            add(text, record.v);
        }
        text += '\n';
    }

    const auto mine = static_cast<std::int64_t>(text.size());
    std::int64_t before = 0, all = 0;
    MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, comm_);
    if (rank == 0) before = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, comm_);
    SharedFile file(comm_, path_, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    file.resize(bytes_ + all);
    file.write(bytes_ + before, text.data(), mine);
    file.finish("write");
    bytes_ += all;
}

}  // namespace minimd
