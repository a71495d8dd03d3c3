// One step of a random program (random_test.cpp): a collective of any kind, form, size and datatype.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "forms.h"

namespace random_test {

using Ints = std::vector<int>;
using Random = std::mt19937;

inline int below(Random& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));  // the same everywhere
}

struct Place {
    MPI_Comm comm;
    std::string name;
    Ints sources, destinations;  // of its topology
    bool has_topology = false;

    int ranks() const { return check::size_of(comm); }
    int rank() const { return check::rank_of(comm); }
};

struct Type {
    MPI_Datatype mpi;
    int span;  // ints
};

struct Pending {
    std::string text;
    std::list<Ints> kept;  // what the call reads
    std::list<std::vector<MPI_Datatype>> types;
    std::list<std::vector<MPI_Aint>> offsets;
    Ints recv, expected;
    check::Forms forms;
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t compared = std::numeric_limits<std::size_t>::max();  // ints
};

// One step of the program. Everything that the ranks must agree on comes from the common random numbers.
class Step {
  public:
    Step(Random& common, const Place& place, const std::vector<Type>& types, int number)
        : random_(common),
          place_(place),
          type_(types[static_cast<std::size_t>(below(common, 2))]),
          number_(number) {
        constexpr std::array<int, 7> sizes = {0, 1, 9, 200, 800, 3000, 12000};
        n_ = sizes[static_cast<std::size_t>(below(common, sizes.size()))];
        root_ = below(common, place.ranks());
        in_place_ = below(common, 3) == 0;
        shape_ = below(common, 5);
    }

    void make(Pending& p) {
        const int kinds = place_.has_topology ? 22 : 17;
        const int kind = below(random_, kinds);
        if (kind < 6) {
            reductions(p, kind);
        } else if (kind < 17) {
            movements(p, kind);
        } else {
            neighbourhoods(p, kind);
        }
        p.text = fmt::format("{} of {} by {} on {}, root {}{}, shape {}", name_, n_, type_.span, place_.name,
                             root_, in_place_ ? ", in place" : "", shape_);
        p.compared = std::min(p.compared, p.recv.size());
        p.expected = p.recv;
    }

  private:
    int* data(Pending& p, std::size_t elements) {
        p.kept.push_back(check::pattern(elements * static_cast<std::size_t>(type_.span) + 1, number_));
        return p.kept.back().data();
    }
    void room(Pending& p, std::size_t elements) {
        p.recv = check::pattern(elements * static_cast<std::size_t>(type_.span) + 1, number_ + 1);
    }
    int* array(Pending& p, const std::function<int(int)>& value, int entries) {
        Ints& values = p.kept.emplace_back();
        for (int i = 0; i < entries; ++i)
            values.push_back(value(i));
        values.push_back(0);
        return values.data();
    }
    // Returns places for blocks in sequence with gaps, and the number of elements that they take.
    int* places(Pending& p, const int* counts, int entries, std::size_t& elements) {
        Ints& values = p.kept.emplace_back();
        int place = 1;
        for (int i = 0; i < entries; ++i) {
            values.push_back(place);
            place += counts[i] + 1;
        }
        values.push_back(0);
        elements = static_cast<std::size_t>(place);
        return values.data();
    }
    // Returns how many elements rank `from` sends to rank `to`.
    int between(int from, int to) const {
        switch (shape_) {
            case 0:
                return n_;
            case 1:
                return (from + to) % 2 == 0 ? n_ : 3;
            case 2:
                return from == root_ || to == root_ ? n_ : 0;
            case 3:
                return n_ / 2 + from + 2 * to;
            default:
                return (from * to) % 3 == 0 ? n_ : n_ / 7;
        }
    }

    void reductions(Pending& p, int kind) {
        const std::array<MPI_Op, 5> ops = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_LAND, MPI_MIN};
        const MPI_Op op = ops[static_cast<std::size_t>(shape_)];
        const MPI_Comm comm = place_.comm;
        const int ranks = place_.ranks();
        const int count = n_;
        const int root = root_;
        const bool is_root = place_.rank() == root;
        const auto elements = static_cast<std::size_t>(n_);
        type_ = {MPI_INT, 1};
        const void* from =
            data(p, elements * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(ranks * ranks));
        room(p, elements * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(ranks * ranks));
        if (in_place_ && (kind != 1 || is_root)) from = MPI_IN_PLACE;
        switch (kind) {
            case 0:
                name_ = "allreduce";
                p.forms = FORMS(Allreduce, allreduce, from, to, count, MPI_INT, op, comm);
                break;
            case 1:
                name_ = "reduce";
                p.forms = FORMS(Reduce, reduce, from, is_root ? to : nullptr, count, MPI_INT, op, root, comm);
                break;
            case 2:
                name_ = "scan";
                p.forms = FORMS(Scan, scan, from, to, count, MPI_INT, op, comm);
                break;
            case 3:
                name_ = "exscan";
                p.forms = FORMS(Exscan, exscan, from, to, count, MPI_INT, op, comm);
                if (place_.rank() == 0) p.compared = 0;  // undefined there
                break;
            case 4: {
                name_ = "reduce_scatter";
                const int* counts = array(
                    p, [&](int r) { return r % 2 == 0 ? n_ : r; }, ranks);
                p.compared = static_cast<std::size_t>(counts[place_.rank()]) + 1;
                p.forms = FORMS(Reduce_scatter, reduce_scatter, from, to, counts, MPI_INT, op, comm);
                break;
            }
            default:
                name_ = "reduce_scatter_block";
                p.compared = elements + 1;
                p.forms =
                    FORMS(Reduce_scatter_block, reduce_scatter_block, from, to, count, MPI_INT, op, comm);
                break;
        }
        // In place, the library may use the memory behind the result.
        if (in_place_ && kind >= 4) --p.compared;
    }

    check::Forms barrier() {
        name_ = "barrier";
        const MPI_Comm comm = place_.comm;
        return FORMS(Barrier, barrier, comm);
    }

    void movements(Pending& p, int kind) {
        const MPI_Comm comm = place_.comm;
        const MPI_Datatype type = type_.mpi;
        const int ranks = place_.ranks();
        const int rank = place_.rank();
        const int n = n_;
        const int root = root_;
        const bool is_root = rank == root;
        const auto block = static_cast<std::size_t>(n_);
        const std::size_t blocks = block * static_cast<std::size_t>(ranks);
        std::size_t elements = 0;
        switch (kind) {
            case 6: {
                name_ = "alltoall";
                const void* from = in_place_ ? MPI_IN_PLACE : static_cast<const void*>(data(p, blocks));
                room(p, blocks);
                p.forms = FORMS(Alltoall, alltoall, from, n, type, to, n, type, comm);
                break;
            }
            case 7: {
                name_ = "allgather";
                const void* from = in_place_ ? MPI_IN_PLACE : static_cast<const void*>(data(p, block));
                room(p, blocks);
                p.forms = FORMS(Allgather, allgather, from, n, type, to, n, type, comm);
                break;
            }
            case 8: {
                name_ = "allgatherv";
                const int* counts = array(
                    p, [&](int r) { return between(r, 0); }, ranks);
                const int* displs = places(p, counts, ranks, elements);
                const int mine = counts[rank];
                const void* from = in_place_
                                       ? MPI_IN_PLACE
                                       : static_cast<const void*>(data(p, static_cast<std::size_t>(mine)));
                room(p, elements);
                p.forms = FORMS(Allgatherv, allgatherv, from, mine, type, to, counts, displs, type, comm);
                break;
            }
            case 9:
                name_ = "bcast";
                room(p, block);
                p.forms = FORMS(Bcast, bcast, to, n, type, root, comm);
                break;
            case 10: {
                name_ = "gather";
                const void* from =
                    in_place_ && is_root ? MPI_IN_PLACE : static_cast<const void*>(data(p, block));
                room(p, blocks);
                p.forms = FORMS(Gather, gather, from, n, type, to, n, type, root, comm);
                break;
            }
            case 11: {
                name_ = "scatter";
                const void* from = data(p, blocks);
                const bool stays = in_place_ && is_root;
                room(p, block);
                p.forms =
                    FORMS(Scatter, scatter, from, n, type, stays ? MPI_IN_PLACE : to, n, type, root, comm);
                break;
            }
            case 12:
            case 13: {
                const int* counts = array(
                    p, [&](int r) { return between(r, root); }, ranks);
                const int* displs = places(p, counts, ranks, elements);
                const int mine = counts[rank];
                const bool stays = in_place_ && is_root;
                const void* one = data(p, static_cast<std::size_t>(mine));
                const void* all = data(p, elements);
                if (kind == 12) {
                    name_ = "gatherv";
                    room(p, elements);
                    const void* from = stays ? MPI_IN_PLACE : one;
                    p.forms = FORMS(Gatherv, gatherv, from, mine, type, to, counts, displs, type, root, comm);
                } else {
                    name_ = "scatterv";
                    room(p, static_cast<std::size_t>(mine));
                    p.forms = FORMS(Scatterv, scatterv, all, counts, displs, type, stays ? MPI_IN_PLACE : to,
                                    mine, type, root, comm);
                }
                break;
            }
            case 14:
            case 15: {
                const auto pair = [&](int from, int to) {
                    return in_place_ ? between(std::min(from, to), std::max(from, to)) : between(from, to);
                };
                const int* sc = array(
                    p, [&](int r) { return pair(rank, r); }, ranks);
                const int* sp = places(p, sc, ranks, elements);
                const void* from = in_place_ ? MPI_IN_PLACE : static_cast<const void*>(data(p, elements));
                const int* rc = array(
                    p, [&](int r) { return pair(r, rank); }, ranks);
                const int* rp = places(p, rc, ranks, elements);
                room(p, elements);
                // With one rank, Open MPI 4.1's MPI_Alltoallw takes displacements as numbers of elements.
                if (kind == 14 || ranks == 1) {
                    name_ = "alltoallv";
                    p.forms = FORMS(Alltoallv, alltoallv, from, sc, sp, type, to, rc, rp, type, comm);
                    break;
                }
                name_ = "alltoallw";
                const int bytes = type_.span * static_cast<int>(sizeof(int));
                const int* so = array(
                    p, [&](int r) { return sp[r] * bytes; }, ranks);
                const int* ro = array(
                    p, [&](int r) { return rp[r] * bytes; }, ranks);
                const MPI_Datatype* all = p.types.emplace_back(static_cast<std::size_t>(ranks), type).data();
                p.forms = FORMS(Alltoallw, alltoallw, from, sc, so, all, to, rc, ro, all, comm);
                break;
            }
            default:
                room(p, 1);
                p.forms = barrier();
                break;
        }
    }

    void neighbourhoods(Pending& p, int kind) {
        const MPI_Comm comm = place_.comm;
        const MPI_Datatype type = type_.mpi;
        const int rank = place_.rank();
        const int n = n_;
        const int in = static_cast<int>(place_.sources.size());
        const int out = static_cast<int>(place_.destinations.size());
        const auto source = [&](int i) { return place_.sources[static_cast<std::size_t>(i)]; };
        const auto destination = [&](int i) { return place_.destinations[static_cast<std::size_t>(i)]; };
        std::size_t elements = 0;
        if (kind == 17) {
            name_ = "neighbor_allgather";
            const void* from = data(p, static_cast<std::size_t>(n));
            room(p, static_cast<std::size_t>(n * in));
            p.forms = FORMS(Neighbor_allgather, neighbor_allgather, from, n, type, to, n, type, comm);
            return;
        }
        if (kind == 18) {
            name_ = "neighbor_alltoall";
            const void* from = data(p, static_cast<std::size_t>(n * out));
            room(p, static_cast<std::size_t>(n * in));
            p.forms = FORMS(Neighbor_alltoall, neighbor_alltoall, from, n, type, to, n, type, comm);
            return;
        }
        if (kind == 19) {
            name_ = "neighbor_allgatherv";
            const int mine = between(rank, 1);
            const void* from = data(p, static_cast<std::size_t>(mine));
            const int* rc = array(
                p, [&](int i) { return between(source(i), 1); }, in);
            const int* rp = places(p, rc, in, elements);
            room(p, elements);
            p.forms =
                FORMS(Neighbor_allgatherv, neighbor_allgatherv, from, mine, type, to, rc, rp, type, comm);
            return;
        }
        const int* sc = array(
            p, [&](int i) { return between(rank, destination(i)); }, out);
        const int* sp = places(p, sc, out, elements);
        const void* from = data(p, elements);
        const int* rc = array(
            p, [&](int i) { return between(source(i), rank); }, in);
        const int* rp = places(p, rc, in, elements);
        room(p, elements);
        if (kind == 20) {
            name_ = "neighbor_alltoallv";
            p.forms =
                FORMS(Neighbor_alltoallv, neighbor_alltoallv, from, sc, sp, type, to, rc, rp, type, comm);
            return;
        }
        name_ = "neighbor_alltoallw";
        const MPI_Aint bytes = type_.span * static_cast<MPI_Aint>(sizeof(int));
        std::vector<MPI_Aint>& so = p.offsets.emplace_back(static_cast<std::size_t>(out) + 1);
        std::vector<MPI_Aint>& ro = p.offsets.emplace_back(static_cast<std::size_t>(in) + 1);
        for (int i = 0; i < out; ++i)
            so[static_cast<std::size_t>(i)] = sp[i] * bytes;
        for (int i = 0; i < in; ++i)
            ro[static_cast<std::size_t>(i)] = rp[i] * bytes;
        const MPI_Aint* s = so.data();
        const MPI_Aint* r = ro.data();
        const MPI_Datatype* st = p.types.emplace_back(static_cast<std::size_t>(out) + 1, type).data();
        const MPI_Datatype* rt = p.types.emplace_back(static_cast<std::size_t>(in) + 1, type).data();
        p.forms = FORMS(Neighbor_alltoallw, neighbor_alltoallw, from, sc, s, st, to, rc, r, rt, comm);
    }

    Random& random_;
    const Place& place_;
    Type type_;
    int number_;
    std::string name_;
    int n_ = 0;
    int root_ = 0;
    int shape_ = 0;
    bool in_place_ = false;
};

}  // namespace random_test
