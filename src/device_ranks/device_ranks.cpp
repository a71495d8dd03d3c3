// The C API of include/offpath/device_ranks.h: gathers the facts of every rank, pairs the ranks by pairing.h,
// and makes the communicators.
#include <offpath/device_ranks.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "device_ranks/pairing.h"

namespace {

using offpath::device_ranks::Pairing;
using offpath::device_ranks::RankFacts;
using offpath::device_ranks::RankPlace;
using offpath::device_ranks::Verdict;

constexpr std::size_t kTextBytes = OFFPATH_ARCHITECTURE_MAX;
constexpr std::size_t kTexts = 3;  // kind, node, architecture
using Texts = std::array<char, kTexts * kTextBytes>;

thread_local std::string last_problem;

struct MpiError {
    int code;
};

void check(int code) {
    if (code != MPI_SUCCESS) throw MpiError{code};
}

struct Owned {
    std::vector<int> hosts, devices, peers;
};

void put_text(Texts& texts, std::size_t index, const char* text) {
    if (text != nullptr) std::string_view(text).copy(texts.data() + index * kTextBytes, kTextBytes - 1);
}

std::string get_text(const std::vector<char>& all, int rank, std::size_t index) {
    return all.data() + (static_cast<std::size_t>(rank) * kTexts + index) * kTextBytes;
}

std::vector<RankFacts> gather_facts(MPI_Comm world, int size) {
    Texts mine{};
    utsname system{};
    uname(&system);
    put_text(mine, 0, std::getenv("OFFPATH_RANK_KIND"));
    put_text(mine, 1, std::getenv("OFFPATH_NODE_INDEX"));
    put_text(mine, 2, system.machine);
    int* program = nullptr;
    int known = 0;
    check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &known));
    const int number = known != 0 ? *program : -1;

    const int bytes = static_cast<int>(mine.size());
    std::vector<char> texts(mine.size() * static_cast<std::size_t>(size));
    std::vector<int> programs(static_cast<std::size_t>(size));
    check(MPI_Allgather(mine.data(), bytes, MPI_CHAR, texts.data(), bytes, MPI_CHAR, world));
    check(MPI_Allgather(&number, 1, MPI_INT, programs.data(), 1, MPI_INT, world));
    std::vector<RankFacts> facts;
    facts.reserve(programs.size());
    for (int rank = 0; rank < size; ++rank)
        facts.push_back(
            {get_text(texts, rank, 0), get_text(texts, rank, 1), programs[rank], get_text(texts, rank, 2)});
    return facts;
}

// Ranks with equal keys keep the order of `world`.
void make_communicators(MPI_Comm world, const RankPlace& place, offpath_device_ranks_t& made) {
    check(MPI_Comm_split(world, made.is_device, place.node, &made.kind_comm));
    check(MPI_Comm_split(world, place.node, made.is_device, &made.node_comm));
    const bool devices_lead = made.node_hosts >= made.node_devices;
    check(MPI_Comm_split(world, place.pair, place.is_device == devices_lead ? 0 : 1, &made.pair_comm));
}

void free_communicator(MPI_Comm& comm) {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

void free_all(offpath_device_ranks_t& ranks) {
    for (MPI_Comm* comm : {&ranks.kind_comm, &ranks.node_comm, &ranks.pair_comm})
        free_communicator(*comm);
    delete static_cast<Owned*>(ranks.internal);
    ranks = offpath_device_ranks_t{};
}

offpath_status_t fail(offpath_status_t status, std::string problem, bool print) {
    last_problem = std::move(problem);
    if (print) std::fprintf(stderr, "offpath: device ranks: %s [OFP-0108]\n", last_problem.c_str());
    return status;
}

offpath_status_t split_world(MPI_Comm world, offpath_device_ranks_t* out) {
    int rank = 0, size = 0, inter = 0;
    check(MPI_Comm_test_inter(world, &inter));
    if (inter != 0) return fail(OFFPATH_ERR_INVALID, "world is an inter-communicator", false);
    check(MPI_Comm_rank(world, &rank));
    check(MPI_Comm_size(world, &size));
    const std::vector<RankFacts> facts = gather_facts(world, size);
    const Pairing pairing = offpath::device_ranks::pair_ranks(facts);
    if (pairing.verdict == Verdict::kOneKind) return fail(OFFPATH_ERR_UNAVAILABLE, pairing.problem, false);
    if (pairing.verdict == Verdict::kInvalid) return fail(OFFPATH_ERR_INVALID, pairing.problem, rank == 0);

    const RankPlace& place = pairing.ranks[rank];
    const auto& node = pairing.nodes[place.node];
    auto owned = std::make_unique<Owned>(Owned{node.hosts, node.devices, place.peers});
    offpath_device_ranks_t made{};
    made.struct_size = sizeof made;
    made.is_device = place.is_device ? 1 : 0;
    made.node = place.node;
    made.nodes = static_cast<int>(pairing.nodes.size());
    made.hosts = pairing.hosts;
    made.devices = pairing.devices;
    made.kind_comm = made.node_comm = made.pair_comm = MPI_COMM_NULL;
    made.node_hosts = static_cast<int>(owned->hosts.size());
    made.node_devices = static_cast<int>(owned->devices.size());
    made.node_host_ranks = owned->hosts.data();
    made.node_device_ranks = owned->devices.data();
    made.peers = owned->peers.data();
    made.peer_count = static_cast<int>(owned->peers.size());
    std::snprintf(made.architecture, sizeof made.architecture, "%s", facts[rank].architecture.c_str());
    std::snprintf(made.peer_architecture, sizeof made.peer_architecture, "%s",
                  facts[made.peers[0]].architecture.c_str());
    made.internal = owned.release();
    try {
        make_communicators(world, place, made);
    } catch (const MpiError&) {
        free_all(made);
        throw;
    }
    *out = made;
    last_problem.clear();
    return OFFPATH_OK;
}

}  // namespace

extern "C" {

offpath_status_t offpath_device_ranks_split(MPI_Comm world, offpath_device_ranks_t* ranks) {
    if (ranks == nullptr) return fail(OFFPATH_ERR_INVALID, "the structure for the result is null", false);
    if (ranks->struct_size != sizeof *ranks)
        return fail(OFFPATH_ERR_INVALID, "struct_size is not sizeof(offpath_device_ranks_t)", false);
    if (world == MPI_COMM_NULL) return fail(OFFPATH_ERR_INVALID, "world is MPI_COMM_NULL", false);
    try {
        return split_world(world, ranks);
    } catch (const MpiError& error) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(error.code, text, &length);
        return fail(OFFPATH_ERR_SYSTEM, std::string("an MPI call failed: ") + text, true);
    } catch (const std::bad_alloc&) {
        return fail(OFFPATH_ERR_MEMORY, "out of memory", true);
    }
}

void offpath_device_ranks_free(offpath_device_ranks_t* ranks) {
    if (ranks != nullptr && ranks->internal != nullptr) free_all(*ranks);
}

const char* offpath_device_ranks_problem(void) {
    return last_problem.c_str();
}

}  // extern "C"
