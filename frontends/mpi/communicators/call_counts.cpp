#include "call_counts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "communicators.h"
#include "runtime/runtime.h"
#include "runtime/summary_file.h"

namespace offpath::mpi {
namespace {

using Json = nlohmann::json;

struct CallCounts {
    std::array<std::uint64_t, host_reason_count> calls{};  // by reason; none: on the device
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most = 0;
    std::uint64_t from_others = 0;  // of calls on the device
};
// A communicator is known by its team's number, its name and its size. Those without a team have number 0, as
// the world has, so ones of equal name and size are counted together.
using CallKey = std::tuple<std::uint64_t, std::string, int, Op, Form>;

std::mutex mutex;
std::map<CallKey, CallCounts> counts;

Json to_json(const CallKey& key, const CallCounts& count) {
    const auto& [team, name, ranks, op, form] = key;
    Json on_host = Json::object();
    for (std::size_t i = 1; i < host_reason_count; ++i)
        if (count.calls[i] > 0) on_host[describe(static_cast<HostReason>(i))] = count.calls[i];
    return {{"team", team},
            {"communicator", name},
            {"ranks", ranks},
            {"call", call_name(op, form)},
            {"offloaded", count.calls[0]},
            {"on_host", on_host},
            {"least_bytes", count.least},
            {"most_bytes", count.most},
            {"bytes_from_others", count.from_others}};
}

// The texts of all ranks, on rank 0.
std::vector<std::string> gather(const std::string& mine) {
    const Runtime& r = runtime();
    const int bytes = static_cast<int>(mine.size());
    std::vector<int> sizes(static_cast<std::size_t>(r.size)), begins(sizes.size());
    PMPI_Gather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, r.service);
    for (std::size_t i = 1; i < sizes.size(); ++i)
        begins[i] = begins[i - 1] + sizes[i - 1];
    std::string all(r.rank == 0 ? static_cast<std::size_t>(begins.back() + sizes.back()) : 0, '\0');
    PMPI_Gatherv(mine.data(), bytes, MPI_CHAR, all.data(), sizes.data(), begins.data(), MPI_CHAR, 0,
                 r.service);
    std::vector<std::string> texts;
    for (std::size_t i = 0; r.rank == 0 && i < sizes.size(); ++i)
        texts.push_back(all.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(sizes[i])));
    return texts;
}

}  // namespace

void count_call(const Team& team, MPI_Comm comm, Op op, Form form, HostReason reason, std::uint64_t size,
                std::uint64_t from_others) {
    std::array<char, MPI_MAX_OBJECT_NAME> name{};
    int length = 0, rank = team.rank, ranks = team.size;
    if (comm != MPI_COMM_NULL) {
        PMPI_Comm_get_name(comm, name.data(), &length);
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_size(comm, &ranks);
    }
    const std::lock_guard lock(mutex);
    CallCounts& count = counts[{team.id, std::string(name.data()), ranks, op, form}];
    count.least = std::min(count.least, size);
    count.most = std::max(count.most, size);
    count.from_others += from_others;
    if (rank == 0) ++count.calls[static_cast<std::size_t>(reason)];
}

void report_calls() {
    Json mine = Json::array();
    {
        const std::lock_guard lock(mutex);
        for (const auto& [key, count] : counts)
            mine.push_back(to_json(key, count));
    }
    // Rank 0 of a communicator counts its calls. The other ranks add the bytes that arrived at them.
    Json rows = Json::array();
    std::map<Json, std::size_t> known;
    for (const std::string& text : gather(mine.dump(-1, ' ', false, Json::error_handler_t::replace))) {
        for (Json& row : Json::parse(text)) {
            const Json key = {row["team"], row["communicator"], row["ranks"], row["call"]};
            const auto [found, is_new] = known.emplace(key, rows.size());
            if (is_new) {
                rows.push_back(std::move(row));
                continue;
            }
            Json& sum = rows[found->second];
            sum["offloaded"] = sum["offloaded"].get<std::uint64_t>() + row["offloaded"].get<std::uint64_t>();
            sum["bytes_from_others"] =
                sum["bytes_from_others"].get<std::uint64_t>() + row["bytes_from_others"].get<std::uint64_t>();
            sum["least_bytes"] = std::min(sum["least_bytes"], row["least_bytes"]);
            sum["most_bytes"] = std::max(sum["most_bytes"], row["most_bytes"]);
            for (const auto& [reason, calls] : row["on_host"].items())
                sum["on_host"][reason] =
                    sum["on_host"].value(reason, std::uint64_t{0}) + calls.get<std::uint64_t>();
        }
    }
    if (runtime().rank == 0) add_to_summary_file("calls", rows);
}

}  // namespace offpath::mpi
