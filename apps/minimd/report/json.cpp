#include "minimd/report/json.h"

#include <string>

#include "support/mpi_program.h"

namespace minimd {

namespace {

// Returns the kind of halo at the end of the run.
const char* halo_name(const Settings& settings, const Summary& summary) {
    switch (settings.halo) {
        case HaloKind::blocking:
            return "blocking";
        case HaloKind::polled:
            return "polled";
        case HaloKind::offloaded:
            return summary.halo_kept ? "offloaded" : "overlapped";
        case HaloKind::overlapped:
            break;
    }
    return "overlapped";
}

}  // namespace

nlohmann::ordered_json as_json(const Settings& settings, const Summary& summary) {
    const MeanTimes& times = summary.times;
    nlohmann::ordered_json line = {{"atoms", summary.atoms}, {"steps", summary.steps}};
    line["ns_per_atom_step"] = summary.atom_steps() > 0.0
                                   ? nlohmann::ordered_json(times.total * 1e9 / summary.atom_steps())
                                   : nlohmann::ordered_json(nullptr);
    line["force_s"] = times.force;
    line["neigh_s"] = times.neighbor;
    line["comm_s"] = times.communication;
    line["other_s"] = times.other();
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ThermoRow& row : summary.thermo)
        rows.push_back({{"step", row.step}, {"t", row.temperature}, {"u", row.energy}, {"p", row.pressure}});
    line["thermo"] = rows;
    line["ranks"] = summary.ranks;
    line["threads"] = settings.threads;
    line["precision"] = settings.precision == Precision::single_precision ? "single" : "double";
    line["total_s"] = times.total;
    line["device_share"] = summary.device_share;
    const SharedTimes& shared = summary.shared;
    line["offpath_s"] = {{"starting", shared.starting},
                         {"computing", shared.computing},
                         {"waiting", shared.waiting},
                         {"device", shared.device},
                         {"between", shared.between}};
    line["tunnelled_bytes"] = settings.tunnel ? summary.carried : 0.0;
    line["halo"] = halo_name(settings, summary);
    line["offloaded_bytes"] = settings.tunnel ? 0.0 : summary.carried;
    line["computing_s"] = summary.computing;
    const MeanTimes& on_core = summary.on_core;
    line["on_core_s"] = {{"force", on_core.force},
                         {"neigh", on_core.neighbor},
                         {"comm", on_core.communication},
                         {"other", on_core.other()}};
    return line;
}

void write_json(const Settings& settings, const Summary& summary) {
    if (!settings.json) return;
    const nlohmann::ordered_json line = as_json(settings, summary);
    try {
        mpi_support::write_json_line(line, *settings.json);
    } catch (const mpi_support::UsageError& wrong) {
        if (settings.quiet()) throw;
        mpi_support::write_json_line(line, "-");
        throw mpi_support::UsageError(std::string(wrong.what()) + "; the line is on standard output");
    }
}

}  // namespace minimd
