// bspmm: block-sparse matrix multiplication by get, compute and update, as in NWChem, over one-sided
// communication of MPI or OpenSHMEM, with and without devices. The result is compared with a serial one.
#include <cblas.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "bspmm/kernel.h"
#include "bspmm/reference.h"
#include "bspmm/report.h"
#include "bspmm/variants.h"
#include "command_line/command_line.h"
#include "support/mpi_program.h"
#include "support/output_file.h"

namespace bspmm {

namespace {

constexpr int usage_exit = 2;

struct Options {
    const Variant* variant = nullptr;
    Shape shape;
    int lookahead = -1;
    int iterations = 1;
    bool warm_up = true;
    bool verify = true;
    std::string json;
};

void declare(cli::App& app, Options& options) {
    std::vector<std::string> names;
    std::string said = "How tiles, units and sums travel:";
    for (const Variant& variant : variants()) {
        names.push_back(variant.name);
        said += "\n  " + variant.name + ": " + variant.summary;
    }
    app.add_option_function(
           "--variant",
           [&options](const std::string& name) {
               for (const Variant& variant : variants())
                   if (variant.name == name) options.variant = &variant;
           },
           said)
        ->check(cli::IsMember(names))
        ->required();
    app.add_option("--mesh", options.shape.mesh, "Tiles in a row and in a column of each matrix")
        ->check(cli::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--tile", options.shape.tile, "Numbers in a row and in a column of a tile")
        ->check(cli::Range(1, 8192))
        ->capture_default_str();
    app.add_option("--sparsity", options.shape.sparsity,
                   "Share of zero tiles in A and B, at random (default: the mini-app's dense blocks)")
        ->check(cli::Validator(
            [](const std::string& text) {
                char* end = nullptr;
                const double share = std::strtod(text.c_str(), &end);
                return !text.empty() && *end == 0 && share >= 0 && share < 1 ? std::string()
                                                                             : "use 0 or more, less than 1";
            },
            "in [0, 1)"));
    app.add_option("--seed", options.shape.seed, "Seed of the values and of random zero tiles")
        ->capture_default_str();
    app.add_option("--lookahead", options.lookahead,
                   "Units whose tiles are under way while one is computed (default: by variant)")
        ->check(cli::Range(0, 64));
    app.add_option("--iterations", options.iterations, "Multiplications; medians are reported")
        ->check(cli::Range(1, 100000))
        ->capture_default_str();
    app.add_flag("--warm-up,!--no-warm-up", options.warm_up,
                 "Some units before, which are not timed (default: yes)");
    app.add_flag("--verify,!--no-verify", options.verify, "Compare C with a serial result (default: yes)");
    app.add_option("--json", options.json,
                   "Write the results to this file as one JSON line; - prints that instead of the summary")
        ->check(mpi_support::output_file());
}

int launched(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::max(0, std::atoi(text));
}

// Refuses a problem that does not fit into this machine, before the program spends hours on making it.
// Holders get equal numbers of tiles, so a node holds the share of its ranks.
void refuse_impossible(const Shape& shape) {
    const double here = launched("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    const double share = here / std::max(1, launched("OMPI_COMM_WORLD_SIZE", 1));
    const double needed = Problem::tiles_bytes(shape) * share + Problem::table_bytes(shape) * here;
    const double there =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    if (needed <= there) return;
    constexpr double gib = 1024.0 * 1024 * 1024;
    throw mpi_support::UsageError(fmt::format(
        "--mesh {} --tile {}: the tiles and units of a node take {:.1f} GiB, and this one has {:.1f}; "
        "use smaller ones or more nodes",
        shape.mesh, shape.tile, needed / gib, there / gib));
}

// The size of the symmetric heap must be set before the number of PEs is known. In the worst case, half of
// the PEs hold tiles.
std::size_t heap_bytes(const Options& options, int lookahead) {
    Shape shape = options.shape;
    shape.holders = std::max(1, launched("OMPI_COMM_WORLD_SIZE", 1) / 2);
    const Problem problem(shape);
    const std::size_t tiles = problem.room(Matrix::a) + problem.room(Matrix::b) + problem.room(Matrix::c) +
                              static_cast<std::size_t>(buffers_for(lookahead)) + 1;
    return tiles * (shape.tile_bytes() + 4096);
}

// Returns the shortest CPU time measured for one product.
double product_seconds(int tile, Exchange& exchange) {
    double fastest = std::numeric_limits<double>::max();
    for (int i = 0; i < 5; ++i) {
        timespec from{}, to{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        multiply(tile, exchange.buffer(1), exchange.buffer(2), false, exchange.buffer(0));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        fastest = std::min(fastest, static_cast<double>(to.tv_sec - from.tv_sec) +
                                        static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-9);
    }
    return fastest;
}

void fill(const Problem& problem, Exchange& exchange) {
    for (const Matrix matrix : {Matrix::a, Matrix::b})
        for (int tile = 0; tile < problem.tiles(matrix); ++tile)
            if (const Place place = problem.place(matrix, tile); place.holder == exchange.rank())
                problem.generate(matrix, tile,
                                 exchange.tiles(matrix) + place.index * problem.shape().tile_doubles());
    for (int buffer = 1; buffer < 3; ++buffer)
        std::fill_n(exchange.buffer(buffer), problem.shape().tile_doubles(), 1.0);
    exchange.barrier();
}

std::vector<Phases> of_all_ranks(const std::vector<double>& gathered, int ranks) {
    std::vector<Phases> all;
    for (std::size_t at = 0; at < gathered.size(); at += flat_size(ranks))
        all.push_back(unflatten(gathered.data() + at, ranks));
    return all;
}

nlohmann::ordered_json line(const Options& options, const Problem& problem, const Exchange& exchange,
                            int lookahead, const Summary& summary, double product_s, bool verified) {
    const Phases& phases = summary.phases;
    nlohmann::ordered_json sparsity = "blocks";
    if (options.shape.sparsity) sparsity = *options.shape.sparsity;
    return {{"program", "bspmm"},
            {"variant", options.variant->name},
            {"library", options.variant->start == start_mpi ? "MPI" : shmem_library()},
            {"ranks", exchange.ranks()},
            {"workers_without_tiles", exchange.ranks() - exchange.holders()},
            {"mesh", problem.shape().mesh},
            {"tile", problem.shape().tile},
            {"sparsity", sparsity},
            {"seed", problem.shape().seed},
            {"lookahead", lookahead},
            {"units", problem.units().size()},
            {"tile_bytes", problem.shape().tile_bytes()},
            {"flops", problem.flops()},
            {"total_s", phases.total_s},
            {"claim_s", phases.claim_s},
            {"get_s", phases.get_s},
            {"copy_s", phases.copy_s},
            {"compute_s", phases.compute_s},
            {"accumulate_s", phases.accumulate_s},
            {"finish_s", phases.finish_s},
            {"compute_cpu_s", phases.compute_cpu_s},
            {"product_s", product_s},
            {"gets_of_a_rank", phases.gets},
            {"accumulates_of_a_rank", phases.accumulates},
            {"units_of", summary.units_of},
            {"moved_bytes", summary.moved},
            {"verified", verified}};
}

void report(const Options& options, const nlohmann::ordered_json& said) {
    if (!options.json.empty()) mpi_support::write_json_line(said, options.json);
    if (options.json == "-") return;
    const auto number = [&](const char* name) { return said.at(name).get<double>(); };
    std::printf("bspmm: %.0f x %.0f tiles of %.0f x %.0f, %.0f units, %.0f ranks, %s on %s\n", number("mesh"),
                number("mesh"), number("tile"), number("tile"), number("units"), number("ranks"),
                options.variant->name.c_str(), said.at("library").get<std::string>().c_str());
    std::printf(
        "  %.4f s, %.2f Gflop/s; a rank, on average: units %.4f s, get %.4f s, local copy %.4f s, compute "
        "%.4f s, "
        "accumulate %.4f s, finish %.4f s\n",
        number("total_s"), number("flops") / number("total_s") * 1e-9, number("claim_s"), number("get_s"),
        number("copy_s"), number("compute_s"), number("accumulate_s"), number("finish_s"));
    std::printf("  verification %s\n", !options.verify ? "not asked for"
                                       : said.at("verified").get<bool>()
                                           ? "passed: C equals the serial result"
                                           : "FAILED");
}

int run(const Options& options, int lookahead, Exchange& exchange) {
    openblas_set_num_threads(1);
    Shape shape = options.shape;
    shape.holders = exchange.holders();
    const Problem problem(shape);
    exchange.allocate(problem, buffers_for(lookahead), slots_for(lookahead));
    fill(problem, exchange);
    const double product_s = product_seconds(shape.tile, exchange);

    // At the end all ranks wait for the units that a slow worker has taken.
    const int own_lookahead = exchange.rank() < exchange.holders() ? lookahead : std::min(lookahead, 1);
    const auto units = static_cast<std::int64_t>(problem.units().size());
    if (options.warm_up) {
        run_kernel(problem, exchange, own_lookahead, std::min<std::int64_t>(units, 4 * exchange.ranks()));
        exchange.restart();
    }
    std::vector<std::vector<Phases>> iterations;
    double wrong = 0;
    for (int i = 0; i < options.iterations; ++i) {
        if (i > 0) exchange.restart();
        const Phases mine = run_kernel(problem, exchange, own_lookahead, units);
        if (options.verify && exchange.rank() < exchange.holders())
            wrong += static_cast<double>(wrong_tiles(problem, exchange.rank(), exchange.tiles(Matrix::c)));
        iterations.push_back(of_all_ranks(exchange.gather(flatten(mine)), exchange.ranks()));
    }
    double wrong_in_all = 0;
    for (const double each : exchange.gather({wrong}))
        wrong_in_all += each;
    if (exchange.rank() != 0) return 0;
    const bool verified = options.verify && wrong_in_all == 0;
    report(options, line(options, problem, exchange, lookahead, summarise(iterations), product_s, verified));
    if (wrong_in_all > 0) std::fprintf(stderr, "bspmm: %.0f tiles of C are wrong\n", wrong_in_all);
    return wrong_in_all > 0 ? 1 : 0;
}

int start(const Options& options) {
    const int lookahead = options.lookahead >= 0 ? options.lookahead : options.variant->lookahead;
    if (options.shape.tile_doubles() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw mpi_support::UsageError("a tile has more than 2^31-1 numbers");
    refuse_impossible(options.shape);
    const std::unique_ptr<Exchange> exchange = options.variant->start(heap_bytes(options, lookahead));
    try {
        return run(options, lookahead, *exchange);
    } catch (const std::bad_alloc&) {
        std::fprintf(
            stderr,
            "bspmm: rank %d: there is no memory for its tiles: use a smaller --mesh or --tile, or more "
            "ranks\n",
            exchange->rank());
        exchange->abort(1);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bspmm: rank %d: %s\n", exchange->rank(), error.what());
        exchange->abort(1);
    }
    return 1;
}

}  // namespace

}  // namespace bspmm

int main(int argc, char** argv) {
    cli::App app("Block-sparse matrix multiplication: get tiles, multiply, add to C.", "bspmm");
    bspmm::Options options;
    bspmm::declare(app, options);
    // Every process parses the command line before there are ranks; only one of them prints.
    const bool speaks = bspmm::launched("OMPI_COMM_WORLD_RANK", 0) == 0;
    try {
        app.parse(argc, argv);
        return bspmm::start(options);
    } catch (const cli::ParseError& error) {
        const bool asked_for_help = error.exit_code() == 0;
        if (speaks) app.exit(error);
        return asked_for_help ? 0 : bspmm::usage_exit;
    } catch (const mpi_support::UsageError& error) {
        if (speaks) std::fprintf(stderr, "bspmm: %s\n", error.what());
        return bspmm::usage_exit;
    }
}
