#include "cost_model.h"

#include <algorithm>

namespace offpath::mpi {

double exposed(const Cost& cost, double gap_s) {
    return cost.pure_s - cost.overlap * std::clamp(gap_s, 0.0, cost.pure_s);
}

bool device_pays(const Cost& host, const Cost& device) {
    const double gap = host.pure_s;
    // Relative to the whole step, because the program sees the step get faster.
    const double step = gap + exposed(host, gap);
    return gap + exposed(device, gap) <= (1 - least_gain) * step &&
           device.pure_s <= (1 + most_loss) * host.pure_s;
}

bool device_pays_blocking(const Cost& host, const Cost& device) {
    return device.pure_s <= (1 - least_gain) * host.pure_s;
}

std::uint64_t switch_over(const std::vector<TableRow>& rows, bool blocking) {
    std::uint64_t from = never;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
        if (!(blocking ? device_pays_blocking : device_pays)(row->host, row->device)) break;
        from = row->bytes;
    }
    return from;
}

std::optional<TableRow> at_size(const std::vector<TableRow>& rows, std::uint64_t bytes) {
    const auto above =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.bytes >= bytes; });
    if (above == rows.end()) return std::nullopt;
    if (above->bytes == bytes) return *above;
    if (above == rows.begin()) return std::nullopt;
    const TableRow& below = *(above - 1);
    const double share =
        static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
    const auto between = [&](const Cost& a, const Cost& b) {
        return Cost{a.pure_s + share * (b.pure_s - a.pure_s), a.overlap + share * (b.overlap - a.overlap)};
    };
    TableRow row = below;
    row.bytes = bytes;
    row.host = between(below.host, above->host);
    row.device = between(below.device, above->device);
    return row;
}

}  // namespace offpath::mpi
