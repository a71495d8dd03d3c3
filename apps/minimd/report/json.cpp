#include "minimd/report/json.h"

#include "support/mpi_program.h"

namespace minimd {

nlohmann::ordered_json as_json(const Settings& settings, const Summary& summary) {
    const Times& times = summary.times;
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
    line["tunnelled_bytes"] = summary.tunnelled;
    return line;
}

void write_json(const Settings& settings, const Summary& summary) {
    if (settings.json) mpi_support::write_json_line(as_json(settings, summary), *settings.json);
}

}  // namespace minimd
