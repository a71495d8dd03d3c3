// Decides, from what the launcher told every rank, which ranks are hosts, which are devices, and which of
// them work together.
//
// Pure: no MPI, no environment, no clock. Every rank of a job calls pair_ranks() with the same table and gets
// the same answer, so errors need no further agreement.
#pragma once

#include <string>
#include <vector>

namespace offpath::device_ranks {

// The facts that one rank knows about itself. Empty texts: the variable is not set.
struct RankFacts {
    std::string kind;  // OFFPATH_RANK_KIND
    std::string node;  // OFFPATH_NODE_INDEX
    int program = -1;  // MPI_APPNUM: which program of an MPMD command line; -1: unknown
    std::string architecture;
};

struct Node {
    std::vector<int> hosts;    // ranks in world order
    std::vector<int> devices;  // likewise
};

struct RankPlace {
    bool is_device = false;
    int node = 0;
    int pair = 0;            // number of the pair that this rank is in, over the whole job
    std::vector<int> peers;  // the ranks of the other kind in the pair, ascending; never empty
};

enum class Verdict {
    kPaired,
    kOneKind,  // no devices, or no hosts: nothing to pair
    kInvalid,
};

struct Pairing {
    Verdict verdict = Verdict::kPaired;
    std::string problem;  // one line, set unless paired
    std::vector<Node> nodes;
    std::vector<RankPlace> ranks;  // by rank in world
    int hosts = 0;
    int devices = 0;
    int pairs = 0;
};

Pairing pair_ranks(const std::vector<RankFacts>& facts);

// Which of `few` gets item `item` of `many`, in contiguous blocks whose sizes differ by at most one. 0 <=
// item < many.
int owner_of(int item, int many, int few);

}  // namespace offpath::device_ranks
