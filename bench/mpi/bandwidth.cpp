// Bytes per second of all ranks together.
//   p2p          rank r of the lower half sends `window` messages at a time to rank r + half, which answers
//                when all have arrived; with an odd number of ranks, the last one takes no part
//   collectives  the bytes that all ranks have to send to others, over the time of the slowest rank

#include "command_line/command_line.h"
#include "commands.h"
#include "interval.h"

namespace mpi_bench {

namespace {

constexpr const char* kPointToPoint = "p2p";
constexpr int kDataTag = 1, kAnswerTag = 2;

struct Result {
    std::vector<double> samples;
    bool verified = true;
};

class BandwidthPair {
  public:
    BandwidthPair(const BandwidthOptions& options, const mpi_support::World& world)
        : bytes_(static_cast<int>(options.bytes)),
          window_(options.window),
          half_(world.ranks / 2),
          sends_(world.rank < half_),
          watches_(world.rank >= 2 * half_),
          peer_(sends_ ? world.rank + half_ : world.rank - half_) {
        if (watches_) return;
        const std::uint64_t key = 1 + static_cast<std::uint64_t>(sends_ ? world.rank : peer_);
        for (int slot = 0; slot < (sends_ ? 1 : window_); ++slot)
            blocks_.push_back({options.bytes * static_cast<std::size_t>(slot), options.bytes, {key << 40}});
        buffer_ = mpi_support::Buffer(options.bytes * blocks_.size(), options.allocator);
        requests_.resize(window_, MPI_REQUEST_NULL);
    }

    void prepare(std::uint64_t round) {
        if (sends_ && !watches_) {
            fill_block(buffer_.as(), blocks_[0], round);
        } else if (!watches_) {
            std::memset(buffer_.as(), 0xa5, buffer_.bytes());
        }
    }

    bool verify(std::uint64_t round) const {
        for (const Block& block : blocks_)
            if (!check_block(buffer_.as(), block, round)) return false;
        return true;
    }

    void exchange() {
        if (watches_) return;
        for (int slot = 0; slot < window_; ++slot) {
            if (sends_) {
                MPI_Isend(buffer_.as(), bytes_, MPI_BYTE, peer_, kDataTag, MPI_COMM_WORLD, &requests_[slot]);
            } else {
                MPI_Irecv(buffer_.as() + blocks_[slot].offset, bytes_, MPI_BYTE, peer_, kDataTag,
                          MPI_COMM_WORLD, &requests_[slot]);
            }
        }
        MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
        if (sends_) {
            MPI_Recv(nullptr, 0, MPI_BYTE, peer_, kAnswerTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(nullptr, 0, MPI_BYTE, peer_, kAnswerTag, MPI_COMM_WORLD);
        }
    }

  private:
    int bytes_, window_, half_;
    bool sends_, watches_;
    int peer_;
    std::vector<Block> blocks_;
    mpi_support::Buffer buffer_;
    std::vector<MPI_Request> requests_;
};

template <typename Subject, typename Exchange>
Result measure_bandwidth(const BandwidthOptions& options, Subject& subject, Exchange exchange) {
    Interval interval(options.shared_clock);
    Result result;
    for (int i = -options.warmup; i < options.iterations; ++i) {
        if (is_verified(i, options)) subject.prepare(i);
        interval.start();
        exchange();
        const double took = interval.elapsed();
        if (i >= 0) result.samples.push_back(took);
        if (is_verified(i, options)) result.verified = subject.verify(i) && result.verified;
    }
    return result;
}

}  // namespace

cli::App* declare_bandwidth(cli::App& app, BandwidthOptions& options) {
    options.op = kPointToPoint;
    cli::App* command = app.add_subcommand(
        "bandwidth", "Bytes per second of all ranks: windows of messages, or a collective");
    std::vector<std::string> names = operation_names();
    names.insert(names.begin(), kPointToPoint);
    command
        ->add_option("--op", options.op, "p2p (windows of MPI_Isend between pairs of ranks) or an operation")
        ->check(cli::IsMember(names))
        ->capture_default_str();
    declare_common(*command, options);
    command->add_option("--window", options.window, "Messages in flight at once (p2p)")
        ->check(cli::Range(1, 65536))
        ->capture_default_str();
    return command;
}

int run_bandwidth(const BandwidthOptions& options, const mpi_support::World& world) {
    Result result;
    double bytes = 0, messages = 1;
    if (options.op == kPointToPoint) {
        if (world.ranks < 2) throw mpi_support::UsageError("bandwidth --op p2p needs at least 2 ranks");
        if (options.bytes > 0x7fffffff)
            throw mpi_support::UsageError("--bytes " + std::to_string(options.bytes) +
                                          ": at most 2147483647");
        BandwidthPair pair(options, world);
        result = measure_bandwidth(options, pair, [&] { pair.exchange(); });
        messages = static_cast<double>(options.window) * (world.ranks / 2);
        bytes = messages * static_cast<double>(options.bytes);
    } else {
        Operation operation(options.op, options.bytes, options.allocator);
        result = measure_bandwidth(options, operation, [&] {
            operation.post();
            operation.wait();
        });
        bytes = operation.layout().bytes_on_wire;
    }
    const double seconds = median_of_slowest(result.samples);
    nlohmann::ordered_json line = {{"op", options.op}, {"bytes", options.bytes}, {"ranks", world.ranks}};
    if (options.op == kPointToPoint) line["window"] = options.window;
    line["bandwidth_Bps"] = bytes / seconds;
    line["message_rate"] = messages / seconds;
    return finish(std::move(line), result.verified, options, world);
}

}  // namespace mpi_bench
