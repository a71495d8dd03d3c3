// World: ranks, engines of proxies and a loopback hub in one process, for tests of the engine. The memory of
// a rank is served in one of three ways, like the real back ends: through a pointer (map), by calls that copy
// at once (cma), or by calls that complete later (staged).
#pragma once

#include "engine/engine.h"
#include "engine/impl.h"
#include "transport/faulty/faulty.h"
#include "transport/loopback/loopback.h"

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace offpath::testing {

class TestMemory final : public memory::HostMemory {
  public:
    explicit TestMemory(memory::BackEnd kind) : kind_(kind) {}
    // Memory of this region has pointers, whatever the kind of the rest.
    static constexpr std::uint64_t mapped_region = 77;
    memory::BackEnd back_end(const memory::HostRange&) const override { return kind_; }
    std::byte* direct(const memory::HostRange& range, std::uint64_t offset, std::uint64_t bytes) override {
        if ((kind_ != memory::BackEnd::map && range.region != mapped_region) || offset + bytes > range.bytes)
            return nullptr;
        return reinterpret_cast<std::byte*>(range.address) + offset;
    }
    Status read(const memory::HostRange& range, std::uint64_t offset, void* to, std::size_t bytes,
                Completion* completion) override {
        return transfer(range, offset, bytes, completion,
                        [=](std::byte* host) { std::memcpy(to, host, bytes); });
    }
    Status write(const memory::HostRange& range, std::uint64_t offset, const void* from, std::size_t bytes,
                 Completion* completion) override {
        const Status status = transfer(range, offset, bytes, completion,
                                       [=](std::byte* host) { std::memcpy(host, from, bytes); });
        // Every other write overtakes what was started before it.
        if (status == Status::in_progress && ++writes_ % 2 == 0)
            std::ranges::rotate(later_, std::prev(later_.end()));
        return status;
    }
    bool reads_at_once(const memory::HostRange&, std::uint64_t, std::uint64_t) override {
        return kind_ == memory::BackEnd::cma;
    }
    // Pages of 4 KiB that are read through pointers; null: none.
    std::function<bool(std::uint64_t)> shares;
    bool has_shared_pages() const override { return shares != nullptr; }
    memory::ReadableRun readable_run(const memory::HostRange& range, std::uint64_t offset,
                                     std::uint64_t bytes) override {
        const std::uint64_t begin = range.address + offset;
        const auto is_shared = [&](std::uint64_t at) { return shares((begin + at) >> 12); };
        std::uint64_t at = 0x1000 - begin % 0x1000;
        while (at < bytes && is_shared(at) == is_shared(0))
            at += 0x1000;
        return {is_shared(0) ? reinterpret_cast<const std::byte*>(begin) : nullptr, std::min(at, bytes)};
    }
    // Memory of kind xgvmi is reached by the network alone (NetworkLoopback); what goes another way is
    // staged.
    NetworkPlace network_place(const memory::HostRange& range, std::uint64_t offset,
                               std::uint64_t bytes) override {
        if (kind_ != memory::BackEnd::xgvmi || offset + bytes > range.bytes) return {};
        return {this, range.address + offset};
    }
    Status copy_places(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                       Completion*) override {
        if (bytes < least_network_bytes) ++small_copies;
        std::memcpy(reinterpret_cast<void*>(to.address), reinterpret_cast<const void*>(from.address), bytes);
        return Status::ok;
    }
    std::uint64_t staged_bytes = 0;  // through read() and write()
    unsigned small_copies = 0;       // that a network card must not be asked for
    // From now on nothing may access the memory. Outstanding operations complete without an error.
    void forbid() { forbidden_ = true; }
    // The proxy that started the outstanding operations has died.
    void drop() { later_.clear(); }
    // Completes the operations that were started so far.
    bool progress() {
        std::deque<std::function<void()>> batch;
        batch.swap(later_);
        for (auto& answer : batch) {
            answer();
            if (after_each) after_each();
        }
        return !batch.empty();
    }
    // Called after each operation that answers later.
    std::function<void()> after_each;

  private:
    template <typename Copy>
    Status transfer(const memory::HostRange& range, std::uint64_t offset, std::size_t bytes,
                    Completion* completion, Copy copy) {
        if (forbidden_ || offset > range.bytes || bytes > range.bytes - offset) return Status::access;
        staged_bytes += bytes;
        auto* host = reinterpret_cast<std::byte*>(range.address) + offset;
        if (kind_ != memory::BackEnd::staged) {
            copy(host);
            return Status::ok;
        }
        later_.push_back([=] {
            copy(host);
            (*completion)(Status::ok);
        });
        return Status::in_progress;
    }
    memory::BackEnd kind_;
    bool forbidden_ = false;
    unsigned writes_ = 0;
    std::deque<std::function<void()>> later_;
};

struct Done : Completion {
    std::optional<Status> status;
    Done() {
        function = [](Completion* self, Status result) { static_cast<Done*>(self)->status = result; };
    }
};

struct WorldOptions {
    std::uint32_t ranks = 2, proxies = 2;
    memory::BackEnd memory = memory::BackEnd::cma;
    std::optional<memory::BackEnd> memory_of_last;  // of the last rank, if it is another one
    std::optional<transport::FaultPlan> faults;
    transport::LoopbackConfig loopback;
    bool advance_first = false;  // as in a proxy's loop, which handles messages last
    engine::Surroundings surroundings;
    // Wraps the transport of that proxy.
    std::function<std::unique_ptr<transport::Transport>(std::unique_ptr<transport::Transport>, std::uint32_t)>
        wrap;
    engine::Config engine{
        .chunk_bytes = 4096, .send_bounces = 2, .recv_bounces = 2, .chunks_in_flight = 2, .reduce_tiles = 3};
};

class World {
  public:
    explicit World(const WorldOptions& options)
        : options_(options), hub_(options.loopback), stopped_(options.proxies) {
        for (std::uint32_t p = 0; p < options.proxies; ++p) {
            std::unique_ptr<transport::Transport> transport = hub_.join();
            if (options.faults) {
                transport::FaultPlan plan = *options.faults;
                plan.seed += p;
                transport = transport::make_faulty(std::move(transport), plan);
            }
            if (options.wrap) transport = options.wrap(std::move(transport), p);
            transports_.push_back(std::move(transport));
            engine::Surroundings surroundings = options.surroundings;
            if (surroundings.seed.has_value()) *surroundings.seed += p;
            engines_.push_back(
                std::make_unique<engine::Engine>(*transports_[p], p + 1, options.engine, surroundings));
        }
        std::vector<engine::Member> members;
        for (std::uint32_t rank = 0; rank < options.ranks; ++rank)
            members.push_back({proxy_of(rank) + 1, rank});
        sessions_.resize(options.ranks);
        teams_.resize(options.ranks);
        for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
            const bool last = rank + 1 == options.ranks;
            memories_.push_back(std::make_unique<TestMemory>(
                last ? options.memory_of_last.value_or(options.memory) : options.memory));
            engines_[proxy_of(rank)]->open_session({7, 9}, secret(), rank, *memories_[rank],
                                                   &sessions_[rank]);
            for (std::uint32_t p = 0; p < options.proxies; ++p) {
                engines_[proxy_of(rank)]->add_proxy(*sessions_[rank], p + 1, transports_[p]->address());
            }
            engines_[proxy_of(rank)]->create_team(*sessions_[rank], 42, rank, members, &teams_[rank]);
        }
    }

    ~World() {
        for (std::uint32_t p = 0; p < options_.proxies; ++p)
            kill_proxy(p);
    }

    static engine::JobSecret secret() {
        engine::JobSecret secret;
        secret.fill(std::byte{5});
        return secret;
    }
    // The message as that proxy would send it to the other one.
    static std::vector<std::byte> stamped(engine::ProxyId from, engine::ProxyId to,
                                          std::span<const std::byte> header) {
        const engine::Stamp stamp{from, engine::pass_of(secret(), {7, 9}, from, to)};
        std::vector<std::byte> bytes(sizeof stamp + header.size());
        std::memcpy(bytes.data(), &stamp, sizeof stamp);
        std::memcpy(bytes.data() + sizeof stamp, header.data(), header.size());
        return bytes;
    }
    std::uint32_t proxy_of(std::uint32_t rank) const { return rank % options_.proxies; }
    engine::Engine& engine_of(std::uint32_t rank) { return *engines_[proxy_of(rank)]; }
    engine::Team& team(std::uint32_t rank) { return *teams_[rank]; }
    TestMemory& memory(std::uint32_t rank) { return *memories_[rank]; }
    engine::Session* session(std::uint32_t rank) { return sessions_[rank]; }
    std::uint32_t ranks() const { return options_.ranks; }
    // True: the proxy that serves the rank is alive.
    bool is_there(std::uint32_t rank) const { return engines_[proxy_of(rank)] != nullptr; }

    static memory::HostRange range(const void* data, std::size_t bytes) {
        return {0, reinterpret_cast<std::uint64_t>(data), bytes};
    }

    // Runs one round of the loops of all proxies. False: nothing moved.
    bool round() {
        bool moved = false;
        for (std::size_t p = 0; p < engines_.size(); ++p) {
            if (!engines_[p] || stopped_[p]) continue;
            if (options_.advance_first) moved |= engines_[p]->advance();
            moved |= transports_[p]->progress() > 0;
            if (!options_.advance_first) moved |= engines_[p]->advance();
        }
        for (auto& memory : memories_)
            moved |= memory->progress();
        return moved;
    }
    // Runs rounds until `done` holds, or until nothing has moved for a long time. Returns whether it holds.
    bool run_until(const std::function<bool()>& done) {
        for (int idle = 0; idle < 2000;) {
            if (done()) return true;
            idle = round() ? 0 : idle + 1;
        }
        return done();
    }
    // The proxy takes no part in rounds until it is continued.
    void stop(std::uint32_t proxy) { stopped_[proxy] = true; }
    void go_on(std::uint32_t proxy) { stopped_[proxy] = false; }
    bool stopped(std::uint32_t proxy) const { return stopped_[proxy]; }
    // A transport that can reach the proxies but is not one of them.
    std::unique_ptr<transport::Transport> stranger() { return hub_.join(); }
    std::vector<std::byte> address_of(std::uint32_t proxy) const { return transports_[proxy]->address(); }
    // Ends the proxy as if it had died.
    void kill_proxy(std::uint32_t proxy) {
        if (!engines_[proxy]) return;
        engines_[proxy]->close();
        transports_[proxy].reset();
        engines_[proxy].reset();
        for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
            if (proxy_of(rank) == proxy) memories_[rank]->drop();
    }

  private:
    WorldOptions options_;
    transport::LoopbackHub hub_;
    std::vector<bool> stopped_;
    std::vector<std::unique_ptr<TestMemory>> memories_;
    std::vector<std::unique_ptr<transport::Transport>> transports_;
    std::vector<std::unique_ptr<engine::Engine>> engines_;
    std::vector<engine::Session*> sessions_;
    std::vector<engine::Team*> teams_;
};

}  // namespace offpath::testing
