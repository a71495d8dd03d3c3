// Routes: what of a profiled program the product would give to the devices, by its defaults (docs/mpi.md,
// docs/point-to-point.md): non-blocking collectives and messages between nodes from their switch-overs on,
// and windows that span nodes. Everything else stays on the host. All ranks of a call get the same answer.
//
// What the product decides by trials while a program runs is decided here by rules: blocking collectives, and
// messages with whose transfer neither end computes, stay on the host.
// Ownership: borrows the profiles. Threads: any; it does not change after construction.
#pragma once

#include "sim/machine/cluster.h"
#include "sim/profile/collective_call.h"

#include <map>
#include <set>
#include <tuple>

namespace offpath::sim {

class Routes {
  public:
    Routes(const Cluster& cluster, const std::vector<RankProfile>& profiles);

    // A number of the communicator that all of its ranks have alike.
    std::uint64_t communicator(std::uint32_t rank, std::int32_t comm) const;
    bool collective_on_device(std::uint32_t rank, const ProfiledCall& call, const CollectiveName& what) const;
    // `peer` and `tag` are those of one half of a call of `rank`, as the profile has them. `number` is how
    // many messages the sender has sent to the receiver before, with this communicator and tag.
    bool message_on_device(std::uint32_t rank, const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                           bool sends, std::uint64_t number) const;
    // Of such a message: whether its header goes by the libraries, for a matched probe.
    bool message_has_header(std::uint32_t rank, const ProfiledCall& call, std::int32_t peer, std::int32_t tag,
                            bool sends) const;
    bool window_on_device(std::uint32_t rank, std::int32_t comm) const;

  private:
    // Messages of one sender to one receiver, with one communicator and tag.
    using Channel = std::tuple<std::uint64_t, std::int32_t, std::uint32_t, std::uint32_t>;
    struct Messages {
        std::uint64_t least_bytes = UINT64_MAX, most_bytes = 0;
        std::vector<bool> large;  // by number, where some are and others are not
        bool received = false, overlaps = false;
        bool probed = false;  // by matched probes
        bool is_mixed() const;
    };
    struct Blocks {
        std::uint64_t bytes = 0, count = 0;
    };
    void number_communicators();
    void learn_message(std::uint32_t rank, const ProfiledCall& call);
    // Which of a rank's messages are large, in channels that have others as well.
    void find_large(std::uint32_t rank);
    std::uint32_t world_rank(std::uint32_t rank, std::int32_t comm, std::int32_t peer) const;

    const Cluster& cluster_;
    const std::vector<RankProfile>& profiles_;
    std::vector<std::vector<std::uint64_t>> communicators_;  // by rank
    std::map<Channel, Messages> channels_;
    std::set<std::pair<std::uint64_t, std::uint32_t>> matched_by_host_;  // receivers with wildcards or probes
    std::map<std::pair<std::uint64_t, std::string>, Blocks> blocks_;     // of collectives whose blocks differ
};

}  // namespace offpath::sim
