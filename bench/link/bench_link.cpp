// bench-link measures what a link costs compared with the bare transport: the round trip of a command, the
// throughput of staged transfers, and the CPU time of the client's agent. Two processes meet through files in
// a directory, so with --role each may run in its own network namespace. Without --role, this program starts
// both. It prints JSON.
#include "command_line/command_line.h"
#include "link/choice/transport_choice.h"
#include "link/device_links.h"
#include "link/host_link.h"
#include "raw.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <iostream>

using namespace offpath;
using namespace offpath::link;
using namespace offpath::link::bench;

namespace {

constexpr std::uint64_t token = 0x6c696e6b;
constexpr std::size_t region_bytes = std::size_t{64} << 20;

struct Options {
    std::string role, dir, devices;
    std::vector<std::size_t> sizes{4096, 65536, 524288, 4194304};
    double seconds = 0.5;
    unsigned repeats = 3, window = 8;
};

// What the host asks the device to do; it is sent as the number of a team to destroy.
enum class Ask : std::uint64_t { nothing, to_device, to_host, both, bye };
std::uint64_t ask(Ask what, std::size_t bytes) {
    return static_cast<std::uint64_t>(what) << 56 | bytes;
}

void check(Status status, const std::string& what) {
    if (status != Status::ok) throw std::runtime_error(fmt::format("{}: {}", what, to_string(status)));
}

class Device {
  public:
    explicit Device(const Options& options) : options_(options) {
        std::string problem;
        check(open_device_links(options.devices, links_, problem), problem);
        const auto address = get(options.dir + "/host-link");
        check(links_->open(address, token, {}, link_, problem), problem);
        put(options.dir + "/device-link", link_->address());
        channel_ = link_->take_channel();
        transfers_ = link_->take_transfers();
        const auto memory = get(options.dir + "/host-memory");
        std::memcpy(&host_memory_, memory.data(), sizeof host_memory_);
        local_.resize(region_bytes);
    }
    void serve() {
        while (!bye_) {
            std::span<const std::byte> record;
            while (channel_->next(record) == control::NextRecord::record)
                execute(record);
            if (!bye_) step();
        }
    }

  private:
    struct Slot : Completion {
        bool busy = false, failed = false;
    };

    void step() {
        if (link_->lost()) throw std::runtime_error("the host is gone");
        if (links_->progress() + transfers_->progress() > 0) {
            idle_ = 0;
            return;
        }
        if (++idle_ < 2000 || !channel_->prepare_sleep() || transfers_->arm() != Status::ok ||
            links_->arm() != Status::ok)
            return;
        pollfd poller{links_->event_fd(), POLLIN, 0};
        poll(&poller, 1, 100);
    }
    void execute(std::span<const std::byte> record) {
        control::Command command;
        std::string problem;
        check(control::decode_command(record, command, problem), problem);
        const std::uint64_t number = std::get<control::DestroyTeam>(command).team;
        const auto what = static_cast<Ask>(number >> 56);
        const std::size_t bytes = number & 0xffffffffffff;
        std::uint64_t moved = 0;
        if (what == Ask::bye) bye_ = true;
        if (what == Ask::to_device || what == Ask::to_host || what == Ask::both) moved = stream(what, bytes);
        channel_->complete(0, Status::ok, 0, 0, moved);
        channel_->wake();
        for (int i = 0; bye_ && i < 1000; ++i)
            links_->progress();
    }
    std::uint64_t stream(Ask what, std::size_t bytes) {
        std::vector<Slot> slots(std::size_t{options_.window} * (what == Ask::both ? 2 : 1));
        for (Slot& slot : slots)
            slot.function = [](Completion* self, Status status) {
                static_cast<Slot*>(self)->busy = false;
                static_cast<Slot*>(self)->failed = status != Status::ok;
            };
        std::uint64_t moved = 0;
        const double end = now_s() + options_.seconds;
        const std::size_t places = region_bytes / 2 / bytes;
        std::size_t place = 0;
        bool busy = true;
        while (busy) {
            busy = false;
            for (std::size_t i = 0; i < slots.size(); ++i) {
                Slot& slot = slots[i];
                if (slot.failed) throw std::runtime_error("a transfer failed");
                if (!slot.busy && now_s() < end) {
                    const bool to_host = what == Ask::to_host || (what == Ask::both && i % 2 == 1);
                    const std::size_t at = (to_host ? region_bytes / 2 : 0) + place++ % places * bytes;
                    slot.busy = true;
                    const Status status = transfers_->start(
                        to_host ? memory::StagingDirection::to_host : memory::StagingDirection::to_device,
                        host_memory_ + at, local_.data() + at, bytes, &slot);
                    if (status != Status::in_progress) throw std::runtime_error("no transfer is taken");
                    moved += bytes;
                }
                busy = busy || slot.busy;
            }
            step();
        }
        return moved;
    }

    const Options& options_;
    std::unique_ptr<DeviceLinks> links_;
    std::unique_ptr<DeviceLink> link_;
    std::unique_ptr<control::ProxyChannel> channel_;
    std::unique_ptr<memory::StagedTransfers> transfers_;
    std::uint64_t host_memory_ = 0;
    std::vector<std::byte> local_;
    unsigned idle_ = 0;
    bool bye_ = false;
};

class HostSide {
  public:
    explicit HostSide(const Options& options) : options_(options), memory_(region_bytes, std::byte{1}) {
        std::unique_ptr<transport::Transport> transport;
        std::unique_ptr<transport::OneSided> one_sided;
        std::string problem;
        check(make_host_transport(options.devices, transport, one_sided, problem), problem);
        check(make_host_link(std::move(transport), std::move(one_sided), link_, problem), problem);
        const auto address = reinterpret_cast<std::uint64_t>(memory_.data());
        put(options.dir + "/host-memory", std::as_bytes(std::span(&address, 1)));
        put(options.dir + "/host-link", link_->address());
        check(link_->connect(get(options.dir + "/device-link"), token, {}, channel_, problem), problem);
        call(ask(Ask::nothing, 0), false);
    }
    ~HostSide() {
        channel_.reset();
        link_.reset();
    }

    nlohmann::json round_trips(bool spins) {
        std::vector<double> times;
        for (int i = 0; i < 4000; ++i) {
            const double start = now_s();
            call(ask(Ask::nothing, 0), spins);
            if (i >= 1000) times.push_back(now_s() - start);
        }
        return {{"test", "command"},
                {"waits_by", spins ? "spinning" : "sleeping"},
                {"round_trip_us", median(times) * 1e6}};
    }
    nlohmann::json staging(Ask what, const char* name, std::size_t bytes) {
        std::vector<double> rates, cpu, wakeups;
        for (unsigned i = 0; i <= options_.repeats; ++i) {
            const auto before = link_->counters();
            const double start = now_s();
            const auto moved = static_cast<double>(call(ask(what, bytes), false));
            const double time = now_s() - start;
            const auto after = link_->counters();
            if (i == 0) continue;
            const double gib = moved / (1 << 30);
            rates.push_back(moved / time);
            cpu.push_back((after.agent_cpu_s - before.agent_cpu_s) / gib);
            wakeups.push_back(static_cast<double>(after.wakeups - before.wakeups) / gib);
        }
        return {{"test", "staging"},
                {"direction", name},
                {"bytes", bytes},
                {"bandwidth_Bps", median(rates)},
                {"agent_cpu_s_per_GiB", median(cpu)},
                {"agent_wakeups_per_GiB", median(wakeups)}};
    }
    nlohmann::json idle() {
        const auto before = link_->counters();
        usleep(1000000);
        const auto after = link_->counters();
        return {{"test", "idle"},
                {"agent_cpu_s_per_s", after.agent_cpu_s - before.agent_cpu_s},
                {"agent_wakeups_per_s", after.wakeups - before.wakeups}};
    }
    void bye() { call(ask(Ask::bye, 0), true); }
    std::string describe() const { return link_->describe(); }

  private:
    std::uint64_t call(std::uint64_t number, bool spins) {
        control::CompletionEntry& entry = channel_->completion(0);
        entry.word.store(0, std::memory_order_relaxed);
        check(channel_->post(control::DestroyTeam{number}), "post");
        channel_->ring();
        const auto pending = [&] { return entry.word.load(std::memory_order_acquire) == 0; };
        const bool drives = spins && channel_->begin_progress();
        while (drives && pending())
            channel_->progress();
        if (drives) channel_->end_progress();
        std::string why;
        while (pending()) {
            const std::uint32_t sequence = channel_->enter_wait();
            if (pending()) channel_->sleep(sequence, 100'000'000);
            channel_->leave_wait();
            if (channel_->lost(why)) throw std::runtime_error(why);
        }
        return entry.bytes;
    }

    const Options& options_;
    std::vector<std::byte> memory_;
    std::unique_ptr<HostLink> link_;
    std::unique_ptr<control::ClientChannel> channel_;
};

// Binds this process to the first or the last core that it may use, like a rank and its device.
void take_core(bool first) {
    cpu_set_t allowed, mine;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int chosen = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed) && (chosen < 0 || !first)) chosen = cpu;
    CPU_ZERO(&mine);
    CPU_SET(chosen, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}

nlohmann::json measure(const Options& options) {
    nlohmann::json rows = nlohmann::json::array();
    std::string transport;
    for (const char* way : {"tcp", "ucx"}) {
        Raw raw(way, options.devices, options.dir, true);
        rows.push_back({{"test", "raw ping-pong"}, {"way", way}, {"round_trip_us", raw.ping() * 1e6}});
        for (bool out : {true, false})
            rows.push_back({{"test", "raw stream"},
                            {"way", way},
                            {"direction", out ? "to_device" : "to_host"},
                            {"bandwidth_Bps", raw.stream(out, options.seconds)}});
        raw.bye();
    }
    HostSide host(options);
    rows.push_back(host.round_trips(true));
    rows.push_back(host.round_trips(false));
    for (std::size_t bytes : options.sizes) {
        rows.push_back(host.staging(Ask::to_device, "to_device", bytes));
        rows.push_back(host.staging(Ask::to_host, "to_host", bytes));
        rows.push_back(host.staging(Ask::both, "both", bytes));
    }
    rows.push_back(host.idle());
    host.bye();
    return {{"transport", host.describe()}, {"window", options.window}, {"rows", rows}};
}

void serve(const Options& options) {
    for (const char* way : {"tcp", "ucx"}) {
        Raw raw(way, options.devices, options.dir, false);
        raw.serve();
    }
    Device(options).serve();
}

}  // namespace

int main(int argc, char** argv) try {
    Options options;
    cli::App app("Round trips, staging rates and the agent's CPU time of a link over UCX, as JSON.");
    app.add_option("--role", options.role, "device or host; else both are started here")
        ->check(cli::IsMember({"device", "host"}));
    app.add_option("--dir", options.dir, "with --role: directory in which both sides meet")
        ->check(cli::ExistingDirectory());
    app.add_option("--devices", options.devices, "network devices, as UCX_NET_DEVICES");
    app.add_option("--sizes", options.sizes, "bytes of a staged transfer")
        ->delimiter(',')
        ->check(cli::Range(std::size_t{1}, region_bytes / 2));
    app.add_option("--seconds", options.seconds, "length of a measurement")->check(cli::Range(0.01, 60.0));
    app.add_option("--repeats", options.repeats, "measurements; their median counts")
        ->check(cli::Range(1, 99));
    app.add_option("--window", options.window, "transfers at once in each direction")
        ->check(cli::Range(1, 64));
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    if (options.role.empty() != options.dir.empty()) {
        std::cerr << "bench-link: --role and --dir go together\n";
        return 2;
    }
    if (options.role == "device") {
        serve(options);
        return 0;
    }
    pid_t child = -1;
    if (options.role.empty()) {
        std::array<char, 32> name{"/tmp/bench-link.XXXXXX"};
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory in /tmp");
        options.dir = name.data();
        child = fork();
        take_core(child != 0);
        if (child == 0) {
            serve(options);
            _exit(0);
        }
    }
    std::cout << measure(options).dump(2) << std::endl;
    if (child > 0) {
        waitpid(child, nullptr, 0);
        std::filesystem::remove_all(options.dir);
    }
    return 0;
} catch (const std::exception& error) {
    std::cerr << "bench-link: " << error.what() << '\n';
    return 1;
}
