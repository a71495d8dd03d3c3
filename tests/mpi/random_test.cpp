// Random programs: many collectives of all kinds in flight on several communicators, of mixed sizes, forms
// and datatypes. Each rank waits for them in an order of its own. Every result is compared with the host's
// MPI.
//
// random_test [SEED [STEPS]]: a failure reports its seed; the same seed and number of ranks give the same
// program.
#include <algorithm>
#include <cstdlib>

#include "random_step.h"

namespace {

using namespace random_test;

void check_result(const Pending& p, unsigned seed, const char* form) {
    check::that(std::equal(p.recv.begin(), p.recv.begin() + static_cast<std::ptrdiff_t>(p.compared),
                           p.expected.begin()),
                "seed {}: {}, {}", seed, p.text, form);
}

// Completes one of the pending operations, or all, with one of the request calls.
void wait_for_some(std::list<Pending>& pending, Random& own, unsigned seed) {
    std::vector<MPI_Request> requests;
    for (const Pending& p : pending)
        requests.push_back(p.request);
    const int count = static_cast<int>(requests.size());
    std::vector<int> done(requests.size(), 0);
    switch (below(own, 4)) {
        case 0: {
            const auto i = static_cast<std::size_t>(below(own, count));
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            done[i] = 1;
            break;
        }
        case 1: {
            int index = MPI_UNDEFINED;
            MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
            if (index != MPI_UNDEFINED) done[static_cast<std::size_t>(index)] = 1;
            break;
        }
        case 2: {
            int n = 0;
            std::vector<int> indices(requests.size());
            MPI_Testsome(count, requests.data(), &n, indices.data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < n; ++i)
                done[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] = 1;
            break;
        }
        default:
            MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
            std::fill(done.begin(), done.end(), 1);
            break;
    }
    std::size_t i = 0;
    for (auto p = pending.begin(); p != pending.end(); ++i) {
        p->request = requests[i];
        if (done[i] == 0) {
            ++p;
            continue;
        }
        check_result(*p, seed, p->request == MPI_REQUEST_NULL ? "non-blocking" : "persistent");
        if (p->request != MPI_REQUEST_NULL) MPI_Request_free(&p->request);
        p = pending.erase(p);
    }
}

std::vector<Place> make_places() {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    std::vector<Place> all(5);
    all[0] = {MPI_COMM_WORLD, "world", {}, {}, false};
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all[1].comm);
    all[1].name = "reversed";
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &all[2].comm);
    all[2].name = "parity";
    int dims[2] = {0, 0};
    const int periods[2] = {1, 0};
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &all[3].comm);
    all[3].name = "grid";
    for (int d = 0; d < 2; ++d) {
        int lower = 0;
        int upper = 0;
        PMPI_Cart_shift(all[3].comm, d, 1, &lower, &upper);
        all[3].sources.insert(all[3].sources.end(), {lower, upper});
    }
    all[3].destinations = all[3].sources;
    all[3].has_topology = true;
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;
    all[4].sources = {previous, rank, previous, next};
    all[4].destinations = {next, next, rank, previous};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, all[4].sources.data(), MPI_UNWEIGHTED, 4,
                                   all[4].destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &all[4].comm);
    all[4].name = "graph";
    all[4].has_topology = true;
    return all;
}

void run(unsigned seed, int steps, const std::vector<Place>& all, const std::vector<Type>& types) {
    Random common(seed);
    Random own(seed * 1000 + static_cast<unsigned>(check::rank_of(MPI_COMM_WORLD)));
    std::list<Pending> pending;
    for (int step = 0; step < steps; ++step) {
        // The two colours of "parity" are two communicators. Both draw the same numbers.
        const Place& place = all[static_cast<std::size_t>(below(common, static_cast<int>(all.size())))];
        Pending p;
        Random of_step(common());
        Step(of_step, place, types, step).make(p);
        MPI_Request reference = MPI_REQUEST_NULL;
        const int form = below(common, 6);
        if (form == 0) {
            p.forms.host_blocking(p.expected.data());
            p.forms.blocking(p.recv.data());
            check_result(p, seed, "blocking");
            continue;
        }
        p.forms.host(p.expected.data(), &reference);
        PMPI_Wait(&reference, MPI_STATUS_IGNORE);
        pending.push_back(std::move(p));
        Pending& started = pending.back();
        if (form == 1 && started.forms.persistent) {
            started.forms.persistent(started.recv.data(), &started.request);
            MPI_Start(&started.request);
        } else {
            started.forms.nonblocking(started.recv.data(), &started.request);
        }
        if (pending.size() > 12 || below(own, 3) == 0) wait_for_some(pending, own, seed);
    }
    while (!pending.empty())
        wait_for_some(pending, own, seed);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const unsigned first = argc > 1 ? static_cast<unsigned>(std::atol(argv[1])) : 1;
    const unsigned seeds = argc > 1 ? 1 : 3;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 120;
    const std::vector<Place> all = make_places();
    MPI_Datatype gaps = MPI_DATATYPE_NULL;
    PMPI_Type_vector(2, 2, 3, MPI_INT, &gaps);
    PMPI_Type_commit(&gaps);
    const std::vector<Type> types = {{MPI_INT, 1}, {gaps, 5}};
    for (unsigned seed = first; seed < first + seeds; ++seed)
        run(seed, steps, all, types);
    for (const Place& place : all) {
        MPI_Comm comm = place.comm;
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    }
    MPI_Type_free(&gaps);
    return check::finish();
}
