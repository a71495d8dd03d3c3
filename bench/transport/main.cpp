// bench-transport: latency of post() and bandwidth of send()/fetch() between two processes, with the CPU time
// of both sides. Start one with --role server and one with --role client, with the same --dir. They meet
// through two files there, so each may run in its own network namespace.
#include "command_line/command_line.h"
#include "common/clock.h"
#include "transport/encrypted/encrypted.h"
#include "transport/ucx/ucx_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace offpath;
using namespace offpath::transport;

namespace {

enum class Kind : std::uint32_t { ping, data, report, bye };
struct Header {
    Kind kind = Kind::ping;
    std::uint32_t size = 0;
    double cpu_s = 0;
    std::span<const std::byte> view() const { return std::as_bytes(std::span(this, 1)); }
};

using ::bench::now_s;

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}
double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

struct Done : Completion {
    bool over = true, failed = false;
    Done() {
        function = [](Completion* self, Status status) {
            auto& done = static_cast<Done&>(*self);
            done.over = true;
            done.failed = status != Status::ok;
        };
    }
    void start(Status status) {
        over = status != Status::in_progress;
        failed = over && status != Status::ok;
    }
};

struct Options {
    std::string role, dir, json;
    UcxConfig ucx;
    bool push = true, encrypt = false;
    std::vector<std::size_t> sizes{4096, 65536, 262144, 524288, 1048576, 8388608};
    unsigned window = 4, repeats = 5, spin = 50;
    double seconds = 0.5;
};

class Side : Handler {
  public:
    explicit Side(const Options& options) : options_(options) {
        std::string problem;
        if (make_ucx_transport(options.ucx, transport_, problem) != Status::ok)
            throw std::runtime_error(problem);
        if (options.encrypt) transport_ = make_encrypted_transport(std::move(transport_));
        transport_->set_handler(this);
        meet();
    }
    void serve();
    nlohmann::json measure();

  private:
    struct Landing {
        std::vector<std::byte> bytes;
        Done done;
    };

    void meet();
    void on_message(const Incoming& message) override;
    void on_endpoint_lost(Endpoint&) override { lost_ = true; }
    // Sleeps if there is no work, as a proxy does after spinning for a while.
    void step();
    template <typename Ready>
    void until(Ready ready) {
        while (!ready())
            step();
    }
    nlohmann::json latency(std::size_t bytes);
    nlohmann::json bandwidth(std::size_t bytes);
    Header report();

    const Options& options_;
    Endpoint* peer_ = nullptr;
    bool server_ = false, lost_ = false, bye_ = false;
    std::uint64_t pings_ = 0, landed_ = 0;
    std::vector<std::unique_ptr<Landing>> landings_;
    std::vector<std::unique_ptr<Done>> window_;
    std::vector<std::byte> payload_;
    std::vector<Header> reports_;
    double cpu_mark_ = 0;
    unsigned idle_ = 0;
    std::unique_ptr<Transport> transport_;  // last member: its end calls the completions above
};

void Side::meet() {
    namespace fs = std::filesystem;
    server_ = options_.role == "server";
    const auto write_file = [](const std::string& path, std::span<const std::byte> bytes) {
        std::ofstream(path + ".part", std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        fs::rename(path + ".part", path);
    };
    const std::string mine = options_.dir + "/" + options_.role;
    const std::string theirs = options_.dir + (server_ ? "/client" : "/server");
    write_file(mine, transport_->address());
    const double limit = now_s() + 20;
    while (!fs::exists(theirs)) {
        if (now_s() > limit) throw std::runtime_error("the other side did not come: no file " + theirs);
        usleep(1000);
    }
    std::ifstream file(theirs, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    fs::remove(theirs);
    if (transport_->connect(std::as_bytes(std::span(text)), &peer_) != Status::ok)
        throw std::runtime_error("cannot connect");
}

void Side::step() {
    if (lost_ && !bye_) throw std::runtime_error("the other side is gone");
    if (transport_->progress() > 0) {
        idle_ = 0;
        return;
    }
    if (++idle_ <= options_.spin || transport_->arm() != Status::ok) return;
    pollfd poller{transport_->event_fd(), POLLIN, 0};
    poll(&poller, 1, 100);
}

Header Side::report() {
    Header header{Kind::report, 0, cpu_seconds() - cpu_mark_};
    cpu_mark_ = cpu_seconds();
    return header;
}

void Side::on_message(const Incoming& message) {
    Header header;
    std::memcpy(&header, message.header.data(), sizeof header);
    switch (header.kind) {
        case Kind::bye:
            bye_ = true;
            return;
        case Kind::report:
            if (server_)
                (void)transport_->post(*peer_, report().view(), {});
            else
                reports_.push_back(header);
            return;
        case Kind::ping:
            ++pings_;
            if (server_) (void)transport_->post(*peer_, message.header, {message.data, message.bytes});
            return;
        case Kind::data:
            break;
    }
    ++landed_;
    if (!message.rendezvous) return;
    auto found = std::ranges::find_if(landings_, [](const auto& each) { return each->done.over; });
    if (found == landings_.end()) found = landings_.insert(found, std::make_unique<Landing>());
    Landing& landing = **found;
    if (landing.bytes.size() < message.bytes) landing.bytes.resize(message.bytes);
    landing.done.start(
        transport_->fetch(message.rendezvous, landing.bytes.data(), message.bytes, &landing.done));
}

void Side::serve() {
    until([&] { return bye_; });
}

nlohmann::json Side::latency(std::size_t bytes) {
    const std::vector<std::byte> payload(bytes);
    std::vector<double> halves;
    for (unsigned repeat = 0; repeat <= options_.repeats; ++repeat) {
        constexpr unsigned rounds = 1000;
        const double start = now_s();
        for (unsigned i = 0; i < rounds; ++i) {
            const std::uint64_t before = pings_;
            if (transport_->post(*peer_, Header{}.view(), payload) != Status::ok)
                throw std::runtime_error("post failed");
            until([&] { return pings_ > before; });
        }
        if (repeat > 0) halves.push_back((now_s() - start) / rounds / 2 * 1e6);
    }
    return {{"what", "post"}, {"bytes", bytes}, {"latency_us", median(halves)}};
}

nlohmann::json Side::bandwidth(std::size_t bytes) {
    payload_.resize(bytes);
    while (window_.size() < options_.window)
        window_.push_back(std::make_unique<Done>());
    const auto over = [](const auto& each) {
        if (each->failed) throw std::runtime_error("a send failed");
        return each->over;
    };
    if (options_.push) (void)transport_->push_bytes(*peer_);
    std::vector<double> rates, cpu_here, cpu_there;
    for (unsigned repeat = 0; repeat <= options_.repeats; ++repeat) {
        (void)transport_->post(*peer_, Header{Kind::report, 0, 0}.view(), {});
        until([&] { return !reports_.empty(); });
        reports_.clear();
        const double start = now_s(), cpu_start = cpu_seconds();
        std::size_t sent = 0;
        for (std::size_t next = 0; now_s() - start < options_.seconds; next = (next + 1) % window_.size()) {
            until([&] { return over(window_[next]); });
            window_[next]->start(transport_->send(*peer_, Header{Kind::data, 0, 0}.view(), payload_.data(),
                                                  bytes, window_[next].get()));
            sent += bytes;
        }
        until([&] { return std::ranges::all_of(window_, over); });
        (void)transport_->post(*peer_, Header{Kind::report, 0, 0}.view(), {});
        until([&] { return !reports_.empty(); });
        const double gb = static_cast<double>(sent) / 1e9;
        if (repeat > 0) {
            rates.push_back(gb / (now_s() - start));
            cpu_here.push_back((cpu_seconds() - cpu_start) / gb);
            cpu_there.push_back(reports_.back().cpu_s / gb);
        }
        reports_.clear();
    }
    return {{"what", "send"},
            {"bytes", bytes},
            {"GB_per_s", median(rates)},
            {"sender_cpu_s_per_GB", median(cpu_here)},
            {"receiver_cpu_s_per_GB", median(cpu_there)}};
}

nlohmann::json Side::measure() {
    nlohmann::json rows = nlohmann::json::array();
    for (std::size_t bytes : {8, 1024, 8192})
        rows.push_back(latency(bytes));
    for (std::size_t bytes : options_.sizes)
        rows.push_back(bandwidth(bytes));
    (void)transport_->post(*peer_, Header{Kind::bye, 0, 0}.view(), {});
    bye_ = true;
    for (int i = 0; i < 100; ++i)
        transport_->progress();
    return {{"transport", transport_->describe()}, {"window", options_.window}, {"rows", rows}};
}

}  // namespace

int main(int argc, char** argv) try {
    Options options;
    cli::App app("Latency of post() and bandwidth of send() between two processes over UCX.");
    app.add_option("--role", options.role, "server or client")
        ->required()
        ->check(cli::IsMember({"server", "client"}));
    app.add_option("--dir", options.dir, "directory in which both sides meet")
        ->required()
        ->check(cli::ExistingDirectory());
    app.add_option("--tls", options.ucx.tls, "UCX transports, e.g. tcp,self");
    app.add_option("--net-devices", options.ucx.net_devices, "network interfaces");
    app.add_option("--rendezvous", options.ucx.rendezvous_bytes, "payloads of this size are fetched");
    app.add_option("--sizes", options.sizes, "payload sizes in bytes")->delimiter(',');
    app.add_option("--window", options.window, "sends in flight")->check(cli::Range(1, 1024));
    app.add_option("--repeats", options.repeats, "measurements, of which the median is shown")
        ->check(cli::Range(1, 100));
    app.add_option("--seconds", options.seconds, "length of a measurement");
    app.add_option("--spin", options.spin, "idle rounds before sleeping");
    app.add_flag("!--no-push", options.push, "let the receiver fetch even where the transport would push");
    app.add_flag("--encrypt", options.encrypt, "encrypt everything; on both sides or on none");
    app.add_flag("!--no-error-handling", options.ucx.error_handling, "do not ask UCX to notice dead peers");
    app.add_option("--json", options.json, "file for the results");
    app.set_version_flag("--version", [] { return "UCX " + ucx_facts().loaded_version; });
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;

    Side side(options);
    if (options.role == "server") {
        side.serve();
        return 0;
    }
    const nlohmann::json results = side.measure();
    for (const auto& row : results["rows"]) {
        if (row["what"] == "post")
            fmt::print("post {:>8} B  {:8.2f} us\n", row["bytes"].get<std::size_t>(),
                       row["latency_us"].get<double>());
        else
            fmt::print("send {:>8} B  {:8.3f} GB/s  cpu {:.3f} + {:.3f} s/GB\n",
                       row["bytes"].get<std::size_t>(), row["GB_per_s"].get<double>(),
                       row["sender_cpu_s_per_GB"].get<double>(), row["receiver_cpu_s_per_GB"].get<double>());
    }
    if (!options.json.empty()) std::ofstream(options.json) << results.dump(2) << '\n';
    return 0;
} catch (const std::exception& error) {
    std::cerr << "bench-transport: " << error.what() << '\n';
    return 1;
}
