#include "device_ranks/pairing.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>

namespace offpath::device_ranks {

namespace {

constexpr std::size_t kListed = 8;  // how many ranks or nodes a message names before "..."

struct Invalid : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename List>
std::string list_of(const List& numbers) {
    std::string text;
    std::size_t count = 0;
    for (const auto number : numbers) {
        if (count == kListed) return text + ", ...";
        text += (count++ == 0 ? "" : ", ") + std::to_string(number);
    }
    return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + list_of(ranks);
}

std::string count_text(int count, const char* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

// Whether all ranks have the variable. Throws if only some do.
bool given_to_all(const std::vector<RankFacts>& facts, std::string RankFacts::*variable, const char* name) {
    std::vector<int> without;
    for (std::size_t rank = 0; rank < facts.size(); ++rank)
        if ((facts[rank].*variable).empty()) without.push_back(static_cast<int>(rank));
    if (without.size() == facts.size()) return false;
    if (!without.empty())
        throw Invalid(std::string(name) + " is set for some ranks but not for " + ranks_text(without) +
                      ": set it for every program of the command line, or for none");
    return true;
}

std::vector<bool> kinds_by_variable(const std::vector<RankFacts>& facts) {
    std::vector<bool> is_device;
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        const std::string& kind = facts[rank].kind;
        if (kind != "host" && kind != "device")
            throw Invalid("OFFPATH_RANK_KIND=" + kind + " of rank " + std::to_string(rank) +
                          " is not understood: use host or device");
        is_device.push_back(kind == "device");
    }
    return is_device;
}

std::vector<bool> kinds_by_program(const std::vector<RankFacts>& facts) {
    std::vector<bool> is_device;
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        const int program = facts[rank].program;
        if (program > 1)
            throw Invalid(
                "rank " + std::to_string(rank) + " runs program " + std::to_string(program) +
                " of the command line, and OFFPATH_RANK_KIND is not set: only with two programs, the "
                "hosts' and then the devices', can it be left out");
        is_device.push_back(program == 1);
    }
    return is_device;
}

std::vector<int> ranks_of_kind(const std::vector<bool>& is_device, bool device) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < is_device.size(); ++rank)
        if (is_device[rank] == device) ranks.push_back(static_cast<int>(rank));
    return ranks;
}

std::vector<Node> nodes_by_index(const std::vector<RankFacts>& facts, const std::vector<bool>& is_device) {
    std::map<std::uint32_t, Node> nodes;
    for (std::size_t rank = 0; rank < facts.size(); ++rank) {
        const std::string& text = facts[rank].node;
        std::uint32_t index = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
        if (error != std::errc{} || end != text.data() + text.size())
            throw Invalid("OFFPATH_NODE_INDEX=" + text + " of rank " + std::to_string(rank) +
                          " is not understood: use a whole number from 0 to 4294967295");
        Node& node = nodes[index];
        (is_device[rank] ? node.devices : node.hosts).push_back(static_cast<int>(rank));
    }
    std::vector<std::uint32_t> no_device, no_host;
    std::vector<Node> dense;
    for (auto& [index, node] : nodes) {
        if (node.devices.empty()) no_device.push_back(index);
        if (node.hosts.empty()) no_host.push_back(index);
        dense.push_back(std::move(node));
    }
    const auto unpaired = [](const std::vector<std::uint32_t>& indices, const char* has, const char* lacks) {
        return "node index" + std::string(indices.size() == 1 ? " " : "es ") + list_of(indices) +
               (indices.size() == 1 ? " has " : " have ") + has + " but " + lacks;
    };
    if (!no_device.empty()) throw Invalid(unpaired(no_device, "host ranks", "no device rank"));
    if (!no_host.empty()) throw Invalid(unpaired(no_host, "device ranks", "no host rank"));
    return dense;
}

std::vector<Node> nodes_by_blocks(const std::vector<int>& hosts, const std::vector<int>& devices) {
    const std::size_t count = std::min(hosts.size(), devices.size());
    if (hosts.size() % count != 0 || devices.size() % count != 0)
        throw Invalid(
            count_text(static_cast<int>(hosts.size()), "host rank") + " and " +
            count_text(static_cast<int>(devices.size()), "device rank") +
            " cannot be dealt out evenly: set OFFPATH_NODE_INDEX for every rank, or make one number a "
            "multiple of the other");
    std::vector<Node> nodes(count);
    for (std::size_t i = 0; i < hosts.size(); ++i)
        nodes[i / (hosts.size() / count)].hosts.push_back(hosts[i]);
    for (std::size_t i = 0; i < devices.size(); ++i)
        nodes[i / (devices.size() / count)].devices.push_back(devices[i]);
    return nodes;
}

void pair_within(const Node& node, int node_index, Pairing& pairing) {
    const bool more_hosts = node.hosts.size() >= node.devices.size();
    const std::vector<int>& many = more_hosts ? node.hosts : node.devices;
    const std::vector<int>& few = more_hosts ? node.devices : node.hosts;
    for (std::size_t i = 0; i < many.size(); ++i) {
        const int owner =
            owner_of(static_cast<int>(i), static_cast<int>(many.size()), static_cast<int>(few.size()));
        RankPlace& one = pairing.ranks[many[i]];
        RankPlace& other = pairing.ranks[few[owner]];
        one.is_device = !more_hosts;
        other.is_device = more_hosts;
        one.node = other.node = node_index;
        one.pair = other.pair = pairing.pairs + owner;
        one.peers.push_back(few[owner]);
        other.peers.push_back(many[i]);
    }
    pairing.pairs += static_cast<int>(few.size());
}

}  // namespace

int owner_of(int item, int many, int few) {
    return static_cast<int>(static_cast<std::int64_t>(item) * few / many);
}

Pairing pair_ranks(const std::vector<RankFacts>& facts) {
    Pairing pairing;
    pairing.ranks.resize(facts.size());
    try {
        const std::vector<bool> is_device = given_to_all(facts, &RankFacts::kind, "OFFPATH_RANK_KIND")
                                                ? kinds_by_variable(facts)
                                                : kinds_by_program(facts);
        const std::vector<int> hosts = ranks_of_kind(is_device, false),
                               devices = ranks_of_kind(is_device, true);
        pairing.hosts = static_cast<int>(hosts.size());
        pairing.devices = static_cast<int>(devices.size());
        const bool indexed = given_to_all(facts, &RankFacts::node, "OFFPATH_NODE_INDEX");
        if (hosts.empty() || devices.empty()) {
            pairing.verdict = Verdict::kOneKind;
            pairing.problem = devices.empty()
                                  ? "the job has host ranks only: start its devices as ranks too, with "
                                    "offpath run --dpu-ranks"
                                  : "the job has device ranks only";
            return pairing;
        }
        pairing.nodes = indexed ? nodes_by_index(facts, is_device) : nodes_by_blocks(hosts, devices);
        for (std::size_t node = 0; node < pairing.nodes.size(); ++node)
            pair_within(pairing.nodes[node], static_cast<int>(node), pairing);
    } catch (const Invalid& error) {
        pairing.verdict = Verdict::kInvalid;
        pairing.problem = error.what();
    }
    return pairing;
}

}  // namespace offpath::device_ranks
