#include "sim/programs/steps.h"

#include <fmt/format.h>

#include <stdexcept>

namespace offpath::sim {

Buffer::Buffer(Cluster& cluster, std::size_t bytes) : size_(bytes) {
    if (cluster.moves_data()) {
        own_.resize(bytes);
        begin_ = own_.data();
    } else {
        begin_ = cluster.empty(bytes);
    }
}

memory::HostRange Buffer::range() const {
    return {0, reinterpret_cast<std::uint64_t>(begin_), size_};
}

void Buffer::fill(const std::function<std::byte(std::size_t)>& value) {
    for (std::size_t i = 0; i < own_.size(); ++i)
        own_[i] = value(i);
}

bool Buffer::holds(const std::function<std::byte(std::size_t)>& value) const {
    for (std::size_t i = 0; i < own_.size(); ++i)
        if (own_[i] != value(i)) return false;
    return true;
}

std::byte pattern_byte(std::uint32_t rank, std::size_t offset) {
    return static_cast<std::byte>((offset * 31 + rank * 97 + offset / 251) & 0xff);
}

namespace {

class RingStep final : public Step {
  public:
    RingStep(Job& job, std::uint32_t rank, std::uint64_t bytes)
        : job_(job),
          rank_(rank),
          before_((rank + job.size() - 1) % job.size()),
          after_((rank + 1) % job.size()),
          sent_(job.cluster(), bytes),
          received_(job.cluster(), bytes) {
        sent_.fill([this](std::size_t at) { return pattern_byte(rank_, at); });
    }

    std::vector<Operation> operations() override {
        engine::Team& team = job_.cluster().team_of(rank_);
        Operation receive{[this, &team](engine::Engine& engine, Completion* done) {
                              return engine.recv(team, received_.range(), before_, 0, nullptr, done);
                          },
                          fmt::format("a message from rank {}", before_)};
        Operation send{[this, &team](engine::Engine& engine, Completion* done) {
                           return engine.send(team, sent_.range(), after_, 0, done);
                       },
                       fmt::format("rank {} to take a message", after_)};
        return {std::move(receive), std::move(send)};
    }
    bool right() const override {
        return received_.holds([this](std::size_t at) { return pattern_byte(before_, at); });
    }

  private:
    Job& job_;
    const std::uint32_t rank_, before_, after_;
    Buffer sent_, received_;
};

class WindowStep final : public Step {
  public:
    WindowStep(Job& job, std::uint32_t rank, std::uint64_t bytes, bool puts)
        : job_(job),
          rank_(rank),
          target_((rank + 1) % job.size()),
          bytes_(bytes),
          puts_(puts),
          exposed_(job.cluster(), bytes),
          own_(job.cluster(), bytes) {
        (puts ? own_ : exposed_).fill([this](std::size_t at) { return pattern_byte(rank_, at); });
        const Status status = job.cluster().worker_of(rank).engine().create_window(
            job.cluster().team_of(rank), 1, exposed_.range(), false, &window_);
        if (is_error(status)) throw std::runtime_error(std::string("create_window: ") + to_string(status));
    }

    std::vector<Operation> operations() override {
        return {{[this](engine::Engine& engine, Completion* done) {
                     engine::OneSidedCall call;
                     call.kind = puts_ ? rma::OpKind::put : rma::OpKind::get;
                     call.target = target_;
                     call.bytes = bytes_;
                     (puts_ ? call.origin : call.result) = own_.range();
                     const Status status = engine.one_sided(*window_, std::move(call), nullptr);
                     if (is_error(status)) return status;
                     return engine.flush_window(*window_, engine::every_target, done);
                 },
                 fmt::format("a {} {} the window of rank {}", puts_ ? "put" : "get", puts_ ? "into" : "from",
                             target_)}};
    }
    bool right() const override {
        const std::uint32_t source = puts_ ? (rank_ + job_.size() - 1) % job_.size() : target_;
        return (puts_ ? exposed_ : own_).holds([&](std::size_t at) { return pattern_byte(source, at); });
    }

  private:
    Job& job_;
    const std::uint32_t rank_, target_;
    const std::uint64_t bytes_;
    const bool puts_;
    Buffer exposed_, own_;
    engine::Window* window_ = nullptr;
};

}  // namespace

std::unique_ptr<Step> make_ring_step(Job& job, std::uint32_t rank, std::uint64_t bytes) {
    return std::make_unique<RingStep>(job, rank, bytes);
}

std::unique_ptr<Step> make_window_step(Job& job, std::uint32_t rank, std::uint64_t bytes, bool puts) {
    return std::make_unique<WindowStep>(job, rank, bytes, puts);
}

}  // namespace offpath::sim
