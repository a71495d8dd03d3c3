#include "sim/profile/profile.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace offpath::sim {
namespace {

using Json = nlohmann::json;

// The profiler nests far fewer loops. Each level of a file costs a call of the reader.
constexpr unsigned most_nested_loops = 100;

class ProfileReader {
  public:
    explicit ProfileReader(const std::string& path) : path_(path) {
        std::ifstream file(path);
        if (!file) throw ProfileError(fmt::format("{}: cannot be read", path));
        try {
            file_ = Json::parse(file);
        } catch (const Json::exception& error) {
            throw ProfileError(fmt::format("{}: not JSON, or cut off: {}", path, error.what()));
        }
        if (!file_.is_object()) fail("the file", file_, "an object is wanted");
    }

    RankProfile read(std::uint32_t rank, std::uint32_t* ranks) {
        if (at(file_, "format", "format") != Json("offpath-profile"))
            fail("format", file_["format"], "\"offpath-profile\" is wanted");
        if (at(file_, "version", "version") != Json(1)) fail("version", file_["version"], "1 is wanted");
        if (whole(file_, "rank", "rank") != rank)
            fail("rank", file_["rank"], fmt::format("{} is wanted", rank));
        const std::uint64_t size = whole(file_, "ranks", "ranks");
        if (size == 0 || size > 65'536) fail("ranks", file_["ranks"], "1 to 65536 are accepted");
        if (rank == 0) *ranks = static_cast<std::uint32_t>(size);
        if (size != *ranks) fail("ranks", file_["ranks"], fmt::format("rank 0's file says {}", *ranks));
        ranks_ = *ranks;
        RankProfile profile;
        profile.begin_s = number(file_, "begin_s", "begin_s");
        profile.end_s = number(file_, "end_s", "end_s");
        if (profile.end_s < profile.begin_s) fail("end_s", file_["end_s"], "it is before begin_s");
        profile.compute_at_end_s = number(file_, "compute_at_end_s", "compute_at_end_s");
        if (file_.contains("preempted_s"))  // older profiles do not have it
            profile.preempted_s = number(file_, "preempted_s", "preempted_s");
        if (file_.contains("cpu_s")) profile.cpu_s = number(file_, "cpu_s", "cpu_s");
        profile.lost = whole(file_, "lost", "lost");
        read_communicators(profile, rank);
        read_windows(profile);
        read_calls(profile);
        calls_ = profile.calls.size();
        profile.sequence = nodes(list(file_, "sequence", "sequence"), "sequence", 0);
        profile.computed_s = profile.compute_at_end_s + computed_in(profile.sequence);
        return profile;
    }

  private:
    static double computed_in(const std::vector<ProfiledNode>& nodes) {
        double sum = 0;
        for (const ProfiledNode& node : nodes)
            sum += node.loop ? computed_in(node.body) : node.compute_s;
        return sum;
    }
    [[noreturn]] void fail(const std::string& field, const Json& value, const std::string& why) const {
        std::string shown = value.dump();
        if (shown.size() > 80) shown = shown.substr(0, 77) + "...";
        throw ProfileError(fmt::format("{}: {}: {} is not accepted: {}", path_, field, shown, why));
    }
    const Json& at(const Json& object, const char* key, const std::string& field) const {
        if (!object.is_object() || !object.contains(key))
            throw ProfileError(fmt::format("{}: {}: is missing", path_, field));
        return object.at(key);
    }
    double seconds(const Json& value, const std::string& field) const {
        if (!value.is_number()) fail(field, value, "a number is wanted");
        const auto found = value.get<double>();
        if (!std::isfinite(found) || found < 0) fail(field, value, "times are not negative");
        return found;
    }
    double number(const Json& object, const char* key, const std::string& field) const {
        return seconds(at(object, key, field), field);
    }
    std::uint64_t count(const Json& value, const std::string& field) const {
        if (!value.is_number_unsigned()) fail(field, value, "a whole number is wanted, not below 0");
        return value.get<std::uint64_t>();
    }
    std::uint64_t whole(const Json& object, const char* key, const std::string& field) const {
        return count(at(object, key, field), field);
    }
    std::uint32_t index_of(const Json& object, const char* key, const std::string& field) const {
        const std::uint64_t found = whole(object, key, field);
        if (found > UINT32_MAX) fail(field, object.at(key), fmt::format("{} is the most", UINT32_MAX));
        return static_cast<std::uint32_t>(found);
    }
    const Json& list(const Json& object, const char* key, const std::string& field) const {
        const Json& value = at(object, key, field);
        if (!value.is_array()) fail(field, value, "a list is wanted");
        return value;
    }
    std::int32_t optional(const Json& object, const char* key, const std::string& field,
                          std::int64_t most = INT32_MAX) const {
        if (!object.contains(key)) return no_peer;
        const Json& value = object.at(key);
        if (!value.is_number_integer() || value.get<std::int64_t>() < null_peer ||
            value.get<std::int64_t>() > most)
            fail(field, value, fmt::format("whole numbers from -2 to {} are accepted", most));
        return value.get<std::int32_t>();
    }

    void read_communicators(RankProfile& profile, std::uint32_t rank) {
        std::size_t index = 0;
        for (const Json& one : list(file_, "communicators", "communicators")) {
            const std::string field = fmt::format("communicators[{}]", index++);
            ProfiledCommunicator comm;
            comm.occurrence = index_of(one, "occurrence", field + ".occurrence");
            comm.rank = index_of(one, "rank", field + ".rank");
            for (const Json& member : list(one, "members", field + ".members")) {
                if (count(member, field + ".members") >= ranks_)
                    fail(field + ".members", member, fmt::format("the program has {} ranks", ranks_));
                comm.members.push_back(member.get<std::uint32_t>());
            }
            if (comm.rank >= comm.members.size() || comm.members[comm.rank] != rank)
                fail(field + ".rank", one.at("rank"), "the members say otherwise");
            profile.communicators.push_back(std::move(comm));
        }
    }

    void read_windows(RankProfile& profile) {
        if (!file_.contains("windows")) return;  // programs without windows, and older profiles
        std::size_t index = 0;
        for (const Json& one : list(file_, "windows", "windows")) {
            const std::string field = fmt::format("windows[{}]", index++);
            if (whole(one, "comm", field + ".comm") >= profile.communicators.size())
                fail(field + ".comm", one.at("comm"), "no communicator has this number");
            const auto flag = [&](const char* name) {
                return one.contains(name) && whole(one, name, field + "." + name) != 0;
            };
            profile.windows.push_back({one.at("comm").get<std::int32_t>(),
                                       whole(one, "bytes", field + ".bytes"), flag("allocated"),
                                       flag("busy")});
        }
    }

    void read_calls(RankProfile& profile) {
        std::size_t index = 0;
        for (const Json& one : list(file_, "calls", "calls")) {
            const std::string field = fmt::format("calls[{}]", index++);
            ProfiledCall call;
            const Json& name = at(one, "call", field + ".call");
            if (!name.is_string()) fail(field + ".call", name, "a name is wanted");
            call.name = name.get<std::string>();
            profile.allocates |= call.name == "Alloc_mem";
            std::int64_t size = ranks_;
            if (one.contains("comm")) {
                if (whole(one, "comm", field + ".comm") >= profile.communicators.size())
                    fail(field + ".comm", one.at("comm"), "no communicator has this number");
                call.comm = one.at("comm").get<std::int32_t>();
                size = static_cast<std::int64_t>(
                    profile.communicators[static_cast<std::size_t>(call.comm)].members.size());
            }
            if (one.contains("window")) {
                if (whole(one, "window", field + ".window") >= profile.windows.size())
                    fail(field + ".window", one.at("window"), "no window has this number");
                call.window = one.at("window").get<std::int32_t>();
                const std::int32_t comm = profile.windows[static_cast<std::size_t>(call.window)].comm;
                size = static_cast<std::int64_t>(
                    profile.communicators[static_cast<std::size_t>(comm)].members.size());
            }
            if (one.contains("windows")) {
                const Json& windows = one.at("windows");
                call.windows = whole(windows, "count", field + ".windows.count");
                call.window_compute_s = number(windows, "compute_s", field + ".windows.compute_s");
            }
            call.peer = optional(one, "peer", field + ".peer", size - 1);
            call.tag = optional(one, "tag", field + ".tag");
            call.from = optional(one, "from", field + ".from", size - 1);
            call.from_tag = optional(one, "from_tag", field + ".from_tag");
            if (one.contains("bytes")) call.bytes = whole(one, "bytes", field + ".bytes");
            if (one.contains("from_bytes")) call.from_bytes = whole(one, "from_bytes", field + ".from_bytes");
            if (one.contains("list"))
                for (const Json& value : list(one, "list", field + ".list"))
                    call.list.push_back(count(value, field + ".list"));
            profile.calls.push_back(std::move(call));
        }
    }

    std::vector<ProfiledNode> nodes(const Json& array, const std::string& where, unsigned loops) const {
        std::vector<ProfiledNode> found;
        for (std::size_t i = 0; i < array.size(); ++i) {
            const Json& one = array[i];
            const std::string field = fmt::format("{}[{}]", where, i);
            ProfiledNode node;
            if (one.is_object()) {
                node.loop = true;
                if (loops >= most_nested_loops)
                    throw ProfileError(
                        fmt::format("{}: sequence: more than {} loops inside each other are not accepted",
                                    path_, most_nested_loops));
                node.times = whole(one, "times", field + ".times");
                node.body = nodes(list(one, "body", field + ".body"), field + ".body", loops + 1);
                if (node.body.empty()) fail(field + ".body", one.at("body"), "a loop has calls");
            } else {
                if (!one.is_array() || (one.size() != 5 && one.size() != 6))
                    fail(field, one,
                         "[call, count, compute_s, inside_s, tests] or one number more is wanted");
                if (count(one[0], field + " (call)") >= calls_)
                    fail(field + " (call)", one[0], "no call has this number");
                node.call = one[0].get<std::uint32_t>();
                node.count = count(one[1], field + " (count)");
                if (node.count == 0) fail(field + " (count)", one[1], "1 is the least");
                node.compute_s = seconds(one[2], field + " (compute_s)");
                node.inside_s = seconds(one[3], field + " (inside_s)");
                node.tests = count(one[4], field + " (tests)");
                if (one.size() == 6) node.bare = count(one[5], field + " (bare)");
                if (node.bare > node.count) fail(field + " (bare)", one[5], "it is more than the count");
            }
            found.push_back(std::move(node));
        }
        return found;
    }

    const std::string path_;
    Json file_;
    std::uint32_t ranks_ = 0;
    std::size_t calls_ = 0;
};

}  // namespace

std::vector<RankProfile> read_profile(const std::string& folder) {
    std::vector<RankProfile> profiles;
    std::uint32_t ranks = 1;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
        profiles.push_back(ProfileReader(fmt::format("{}/rank-{}.json", folder, rank)).read(rank, &ranks));
    return profiles;
}

}  // namespace offpath::sim
