#include "minimd/setup/system_source.h"

#include "minimd/files/restart.h"
#include "minimd/setup/data_file.h"
#include "minimd/setup/lattice.h"

namespace minimd {

namespace {

class LatticeSource : public SystemSource {
  public:
    LatticeSource(const Settings& settings, std::optional<double> mass)
        : settings_(settings), box_(lattice_box(settings)), mass_(mass.value_or(1.0)) {}
    const Vec3& box() const override { return box_; }
    std::int64_t atoms() const override { return lattice_atoms(settings_); }
    System load(const Decomposition& decomposition) override {
        return create_lattice(settings_, box_, decomposition, mass_);
    }

  private:
    const Settings& settings_;
    Vec3 box_;
    double mass_;
};

class DataSource : public SystemSource {
  public:
    DataSource(const std::string& path, MPI_Comm comm, std::optional<double> mass)
        : file_(path, comm), mass_(mass) {}
    const Vec3& box() const override { return file_.box(); }
    std::int64_t atoms() const override { return file_.atoms(); }
    System load(const Decomposition& decomposition) override {
        System system = file_.read(decomposition, notes_);
        if (mass_) system.mass = *mass_;
        return system;
    }

  private:
    DataFile file_;
    std::optional<double> mass_;
};

class RestartSource : public SystemSource {
  public:
    RestartSource(const Settings& settings, MPI_Comm comm, std::optional<double> mass)
        : file_(*settings.restart_from, settings, comm), mass_(mass) {}
    const Vec3& box() const override { return file_.box(); }
    std::int64_t atoms() const override { return file_.atoms(); }
    System load(const Decomposition& decomposition) override {
        System system = file_.read(decomposition);
        if (mass_) system.mass = *mass_;
        return system;
    }

  private:
    RestartFile file_;
    std::optional<double> mass_;
};

}  // namespace

std::unique_ptr<SystemSource> open_source(const Settings& settings, MPI_Comm comm,
                                          std::optional<double> mass) {
    if (settings.restart_from) return std::make_unique<RestartSource>(settings, comm, mass);
    if (settings.data_file) return std::make_unique<DataSource>(*settings.data_file, comm, mass);
    return std::make_unique<LatticeSource>(settings, mass);
}

}  // namespace minimd
