// Gather and scatter with equal and with different blocks, compared with the host's MPI: datatypes at both
// ends, every root, in place, gaps and reversed blocks, several communicators, all forms. Whole receive
// buffers are compared.
#include "forms.h"
#include "types.h"

namespace {

using Ints = std::vector<int>;

struct Case {
    MPI_Comm comm;
    std::string name;
    const check::Type& one;  // of a rank's block
    const check::Type& all;  // of the root's blocks
    int units;               // times six ints a block
    int root;
    bool in_place;
    unsigned forms;

    int ranks() const { return check::size_of(comm); }
    bool is_root() const { return check::rank_of(comm) == root; }
    bool stays() const { return in_place && is_root(); }
    static int count(const check::Type& type, int n) { return n * 6 / type.ints_an_element; }
    std::string text(const char* call) const {
        return fmt::format("{}{} root {} on {}, {} and {}, {} units", call, in_place ? " in place" : "", root,
                           name, one.name, all.name, units);
    }
};

Ints filled(const check::Type& type, int elements, int seed) {
    return check::pattern(static_cast<std::size_t>(elements * type.span) + 1, seed);
}

void gather(const Case& c) {
    const int send_count = Case::count(c.one, c.units);
    const int recv_count = Case::count(c.all, c.units);
    const Ints send = filled(c.one, send_count, c.units);
    const Ints recv = filled(c.all, c.ranks() * recv_count, c.units + 1);
    const void* from = c.stays() ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    check::compare_forms(c.text("gather"), recv,
                         FORMS(Gather, gather, from, send_count, c.one.type, c.is_root() ? to : nullptr,
                               recv_count, c.all.type, c.root, c.comm),
                         c.forms);
}

void scatter(const Case& c) {
    const int send_count = Case::count(c.all, c.units);
    const int recv_count = Case::count(c.one, c.units);
    const Ints send = filled(c.all, c.ranks() * send_count, c.units);
    const Ints recv = filled(c.one, recv_count, c.units + 1);
    const void* from = c.is_root() ? send.data() : nullptr;
    check::compare_forms(c.text("scatter"), recv,
                         FORMS(Scatter, scatter, from, send_count, c.all.type, c.stays() ? MPI_IN_PLACE : to,
                               recv_count, c.one.type, c.root, c.comm),
                         c.forms);
}

// Blocks of different sizes, some of them empty, in reversed places with gaps. Half of the displacements are
// negative.
struct Blocks {
    Ints counts, displs;
    int elements = 1;
    int middle = 0;
};
int units_of(const Case& c, int rank) {
    return rank % 4 == 1 ? 0 : rank % 2 == 0 ? c.units + rank : 3 + rank;
}
Blocks blocks_of(const Case& c) {
    Blocks blocks;
    blocks.displs.resize(static_cast<std::size_t>(c.ranks()));
    for (int r = 0; r < c.ranks(); ++r)
        blocks.counts.push_back(Case::count(c.all, units_of(c, r)));
    for (int r = c.ranks() - 1; r >= 0; --r) {
        blocks.displs[static_cast<std::size_t>(r)] = blocks.elements;
        blocks.elements += blocks.counts[static_cast<std::size_t>(r)] + 1;
    }
    blocks.middle = blocks.elements / 2;
    for (int& displ : blocks.displs)
        displ -= blocks.middle;
    return blocks;
}

void gatherv(const Case& c) {
    const Blocks blocks = blocks_of(c);
    const int send_count = Case::count(c.one, units_of(c, check::rank_of(c.comm)));
    const Ints send = filled(c.one, send_count, c.units);
    const Ints recv = filled(c.all, blocks.elements, c.units + 1);
    const void* from = c.stays() ? MPI_IN_PLACE : static_cast<const void*>(send.data());
    const int* counts = c.is_root() ? blocks.counts.data() : nullptr;
    const int* displs = c.is_root() ? blocks.displs.data() : nullptr;
    const int middle = blocks.middle * c.all.span;
    check::compare_forms(c.text("gatherv"), recv,
                         FORMS(Gatherv, gatherv, from, send_count, c.one.type,
                               c.is_root() ? static_cast<int*>(to) + middle : nullptr, counts, displs,
                               c.all.type, c.root, c.comm),
                         c.forms);
}

void scatterv(const Case& c) {
    const Blocks blocks = blocks_of(c);
    const int recv_count = Case::count(c.one, units_of(c, check::rank_of(c.comm)));
    const Ints send = filled(c.all, blocks.elements, c.units);
    const Ints recv = filled(c.one, recv_count, c.units + 1);
    const void* from = c.is_root() ? send.data() + blocks.middle * c.all.span : nullptr;
    const int* counts = c.is_root() ? blocks.counts.data() : nullptr;
    const int* displs = c.is_root() ? blocks.displs.data() : nullptr;
    check::compare_forms(c.text("scatterv"), recv,
                         FORMS(Scatterv, scatterv, from, counts, displs, c.all.type,
                               c.stays() ? MPI_IN_PLACE : to, recv_count, c.one.type, c.root, c.comm),
                         c.forms);
}

void all_calls(const Case& c) {
    gather(c);
    scatter(c);
    gatherv(c);
    scatterv(c);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = check::rank_of(MPI_COMM_WORLD);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm parity = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);
    std::vector<check::Type> types = check::make_types();
    const check::Type& ints = types[0];
    int turn = 0;
    for (const check::Type& type : types) {
        for (const bool in_place : {false, true}) {
            const int root = turn++ % check::size_of(MPI_COMM_WORLD);
            all_calls({MPI_COMM_WORLD, "world", type, ints, 2, root, in_place, check::started});
            all_calls({MPI_COMM_WORLD, "world", ints, type, 90, root, in_place, check::started});
            all_calls({reversed, "reversed", type, type, 300, root, in_place, check::every_form});
        }
    }
    for (int root = 0; root < check::size_of(parity); ++root) {
        for (const int units : {0, 1, 4000})
            all_calls({parity, "parity", types[1], types[4], units, root, root % 2 == 0, check::every_form});
    }
    check::free_types(types);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&parity);
    return check::finish();
}
