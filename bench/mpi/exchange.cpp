// How long both directions of every link take if the ranks do not begin together. The ranks form a ring: each
// sends a message to the next one, puts into its window, or gets from it. A rank posts its receive and packs.
// Odd ranks pack twice as long as even ones, so that the data of a direction are on the way when the other
// one begins. The time runs from the common start to the end of the wait on the slowest rank.
#include <algorithm>

#include "command_line/command_line.h"
#include "commands.h"
#include "interval.h"

namespace mpi_bench {

namespace {

constexpr int kTag = 5;

class Exchange {
  public:
    Exchange(const ExchangeOptions& options, const mpi_support::World& world)
        : op_(options.op),
          bytes_(static_cast<int>(options.bytes)),
          rank_(world.rank),
          next_((world.rank + 1) % world.ranks),
          previous_((world.rank + world.ranks - 1) % world.ranks),
          pack_s_(options.skew_s * (1 + world.rank % 2)),
          own_(options.bytes, options.allocator),
          arrived_(options.bytes, options.allocator) {
        if (op_ == "message") return;
        // What is put arrives in the window; what is got comes from it.
        MPI_Win_create(op_ == "put" ? arrived_.as() : own_.as(), static_cast<MPI_Aint>(options.bytes), 1,
                       MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
        MPI_Win_lock_all(0, window_);
    }
    ~Exchange() {
        if (window_ == MPI_WIN_NULL) return;
        MPI_Win_unlock_all(window_);
        MPI_Win_free(&window_);
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    void prepare(int round) {
        fill_block(own_.as(), block(rank_), static_cast<std::uint64_t>(round));
        std::memset(arrived_.as(), 0xa5, arrived_.bytes());
        if (window_ != MPI_WIN_NULL) MPI_Win_sync(window_);
    }
    void run(const Interval& interval) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        if (op_ == "message")
            MPI_Irecv(arrived_.as(), bytes_, MPI_BYTE, previous_, kTag, MPI_COMM_WORLD, &requests[0]);
        while (interval.elapsed() < pack_s_) {
        }
        if (op_ == "message") {
            MPI_Isend(own_.as(), bytes_, MPI_BYTE, next_, kTag, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else if (op_ == "put") {
            MPI_Put(own_.as(), bytes_, MPI_BYTE, next_, 0, bytes_, MPI_BYTE, window_);
            MPI_Win_flush(next_, window_);
        } else {
            MPI_Get(arrived_.as(), bytes_, MPI_BYTE, next_, 0, bytes_, MPI_BYTE, window_);
            MPI_Win_flush(next_, window_);
        }
    }
    bool verify(int round) {
        if (op_ == "put") {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_sync(window_);
        }
        return check_block(arrived_.as(), block(op_ == "get" ? next_ : previous_),
                           static_cast<std::uint64_t>(round));
    }

  private:
    Block block(int of) const {
        return {0, static_cast<std::size_t>(bytes_), {(1 + static_cast<std::uint64_t>(of)) << 40}};
    }

    const std::string op_;
    const int bytes_, rank_, next_, previous_;
    const double pack_s_;
    mpi_support::Buffer own_, arrived_;
    MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

cli::App* declare_exchange(cli::App& app, ExchangeOptions& options) {
    options.op = "message";
    cli::App* command =
        app.add_subcommand("exchange", "Both directions of every link, by ranks that do not begin together");
    command->add_option("--op", options.op, "What crosses the links")
        ->check(cli::IsMember({"message", "put", "get"}))
        ->capture_default_str();
    declare_common(*command, options);
    command
        ->add_option("--skew-s", options.skew_s,
                     "How long even ranks pack before they send; odd ones take twice as long")
        ->check(cli::Range(0.0, 60.0))
        ->capture_default_str();
    return command;
}

int run_exchange(const ExchangeOptions& options, const mpi_support::World& world) {
    if (options.bytes > 0x7fffffff)
        throw mpi_support::UsageError("--bytes " + std::to_string(options.bytes) + ": at most 2147483647");
    if (world.ranks < 2) throw mpi_support::UsageError("exchange needs at least 2 ranks");
    std::vector<double> samples;
    bool verified = true;
    {
        Exchange exchange(options, world);
        Interval interval(options.shared_clock);
        for (int i = -options.warmup; i < options.iterations; ++i) {
            if (is_verified(i, options)) exchange.prepare(i);
            interval.start();
            exchange.run(interval);
            const double took = interval.elapsed();
            if (i >= 0) samples.push_back(took);
            if (is_verified(i, options)) verified = exchange.verify(i) && verified;
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    return finish({{"op", options.op},
                   {"bytes", options.bytes},
                   {"ranks", world.ranks},
                   {"skew_s", options.skew_s},
                   {"completion_s", median_of_slowest(samples)}},
                  verified, options, world);
}

}  // namespace mpi_bench
