#include "sim/programs/rank.h"

#include <fmt/format.h>

#include <utility>

namespace offpath::sim {
namespace {

// How long a rank polls for its device before it sleeps (OFFPATH_CLIENT_SPIN_US of the product).
constexpr Time client_spin = 20 * 1'000'000;

}  // namespace

Request::Request(Rank& rank) : rank_(rank) {
    function = [](Completion* self, Status status) { static_cast<Request*>(self)->end(status); };
}

void Request::end(Status status) {
    status_ = status;
    Cluster& cluster = rank_.job().cluster();
    const std::uint32_t number = rank_.number();
    if (answer_s_ > 0) return reach_host(this, 0);
    Worker& worker = on_host_ ? cluster.library_of(number) : cluster.worker_of(number);
    if (!on_host_ && cluster.commands_are_messages()) {
        worker.charge_seconds(worker.work().send_s);
        return cluster.agent_of(number).serve(worker.present() + cluster.bus_latency(),
                                              cluster.platform().host.receive_s,
                                              [this] { reach_host(this, 0); });
    }
    const Time present = worker.present();
    cluster.queue().at(present + (on_host_ ? 0 : from_seconds(cluster.platform().completion_s)),
                       &Request::reach_host, this);
}

void Request::reach_host(void* self, std::uint64_t) {
    auto& request = *static_cast<Request*>(self);
    request.over_ = true;
    if (!request.awaited_) return;
    Rank& rank = request.rank_;
    Cluster& cluster = rank.job().cluster();
    if (request.on_host_) return rank.resume_at(rank.now());
    const bool sleeps = rank.now() > rank.waits_since_ + client_spin;
    const bool core_sleeps = cluster.host_core_of(rank.number()).free_at() < rank.now();
    if (sleeps && rank.turns_ != nullptr) rank.turns_->wake(rank.process_);
    cluster.queue().after(sleeps && core_sleeps ? from_seconds(cluster.platform().wake_s) : 0,
                          &Request::wake_host, &request);
}

void Request::wake_host(void* self, std::uint64_t) {
    Rank& rank = static_cast<Request*>(self)->rank_;
    rank.resume_at(rank.step(static_cast<Request*>(self)->answer_s_));
}

Rank::Rank(Job& job, std::uint32_t number)
    : job_(job),
      number_(number),
      random_(job.cluster().shape().seed * 1'000'003 + number),
      turns_(job.cluster().turns_of(number)),
      process_(job.cluster().process_of(number)) {}

Time Rank::now() const {
    return job_.cluster().queue().now();
}

Time Rank::step(double seconds) {
    Cluster& cluster = job_.cluster();
    Core& core = cluster.host_core_of(number_);
    return core.step(from_seconds(seconds + (core.taken_by(this) ? cluster.platform().host.switch_s : 0)));
}

void Rank::resume_at(Time time) {
    job_.cluster().queue().at(time, &Rank::go_on, this);
}

void Rank::go_on(void* self, std::uint64_t) {
    auto& rank = *static_cast<Rank*>(self);
    Cluster& cluster = rank.job_.cluster();
    if (rank.turns_ != nullptr) {
        rank.turns_->join(rank.process_);
        if (!rank.turns_->runs(rank.process_))
            return rank.turns_->when_it_runs(rank.process_, &Rank::go_on, &rank);
    }
    if (rank.polling_ != 0) cluster.host_core_of(rank.number_).stop(rank.polling_);
    rank.polling_ = 0;
    if (cluster.shape().has_libraries()) cluster.library_of(rank.number_).leave();
    rank.waits_for_.clear();
    ++rank.waits_;
    try {
        rank.program_->resume();
    } catch (...) {
        if (!rank.job_.error_) rank.job_.error_ = std::current_exception();
    }
    if (rank.over() && rank.turns_ != nullptr) rank.turns_->leave(rank.process_);
}

void Rank::sleep(void* self, std::uint64_t wait) {
    auto& rank = *static_cast<Rank*>(self);
    if (rank.waits_ == wait) rank.turns_->leave(rank.process_);
}

Rank::Posted Rank::post(const Operation& operation) {
    Cluster& cluster = job_.cluster();
    const bool on_host = operation.on_host || cluster.shape().engine == EngineKind::host;
    Worker& worker = on_host ? cluster.library_of(number_) : cluster.worker_of(number_);
    if (unused_.empty()) {
        requests_.emplace_back(*this);
        unused_.push_back(&requests_.back());
    }
    Request* const request = unused_.back();
    unused_.pop_back();
    request->over_ = request->awaited_ = false;
    request->on_host_ = on_host;
    request->status_ = Status::in_progress;
    request->name_ = operation.name;
    request->answer_s_ = 0;
    if (operation.asked != nullptr) return ask(*request, operation);
    auto command = [&worker, start = operation.start, accesses = operation.accesses, request] {
        worker.charge_operation(accesses);
        const Status status = start(worker.engine(), request);
        if (status != Status::in_progress) (*request)(status);
    };
    if (on_host) {
        resume_at(worker.call_once(std::move(command)));
    } else {
        const bool message = cluster.commands_are_messages();
        const Time end = step(cluster.platform().post_s + (message ? cluster.platform().host.send_s : 0));
        if (message) {
            worker.submit(end + cluster.bus_latency(), [&worker, command = std::move(command)] {
                worker.charge_seconds(worker.work().receive_s);
                command();
            });
        } else {
            worker.submit(end + from_seconds(cluster.platform().command_s), std::move(command));
        }
        resume_at(end);
    }
    return {{*this, request}};
}

Rank::Posted Rank::ask(Request& request, const Operation& operation) {
    Cluster& cluster = job_.cluster();
    const Platform::Work& work = cluster.platform().host;
    const auto bytes = static_cast<double>(ShortWay::bytes_of(operation.requests));
    const auto answer = static_cast<double>(ShortWay::answer_bytes_of(operation.requests));
    request.answer_s_ = work.receive_s + work.receive_byte_s * answer;
    const Time departs = step(work.send_s + work.send_byte_s * bytes);
    cluster.short_way().ask(number_, *operation.asked, operation.requests, departs, &request);
    resume_at(departs);
    return {{*this, &request}};
}

Rank::Awaited Rank::wait(Request& request) {
    if (request.over_) {
        if (is_error(request.status_))
            throw std::runtime_error(
                fmt::format("rank {}: {}: {}", number_, request.name_, to_string(request.status_)));
        if (request.answer_s_ == 0) return {*this, &request, true};
        resume_at(step(std::exchange(request.answer_s_, 0)));
        return {*this, &request};
    }
    request.awaited_ = true;
    waits_for_ = request.name_;
    Cluster& cluster = job_.cluster();
    if (turns_ == nullptr) polling_ = cluster.host_core_of(number_).poll();
    waits_since_ = now();
    if (cluster.shape().has_libraries()) cluster.library_of(number_).enter();
    if (!request.on_host_ && cluster.host_core_is_shared()) {
        const Time end = step(seconds_of(client_spin));
        if (turns_ != nullptr) cluster.queue().at(end, &Rank::sleep, this, waits_);
    }
    return {*this, &request};
}

Rank::Awaited Rank::compute(Time work) {
    if (work == 0) return {*this, nullptr, true};
    job_.cluster().host_core_of(number_).compute(work, &Rank::go_on, this, 0, process_);
    if (turns_ != nullptr) turns_->changed();
    return {*this};
}

Rank::Awaited Rank::pause(Time time) {
    if (time == 0) return {*this, nullptr, true};
    if (turns_ != nullptr) turns_->leave(process_);
    resume_at(now() + time);
    return {*this};
}

Rank::Awaited Rank::meet() {
    if (++job_.met_ < job_.size()) {
        waits_for_ = "the other ranks";
        // As in a barrier of MPI, a library serves others meanwhile.
        if (job_.cluster().shape().has_libraries()) job_.cluster().library_of(number_).enter();
        return {*this};
    }
    job_.met_ = 0;
    if (job_.when_met) job_.when_met();
    for (Rank& rank : job_.ranks_)
        rank.resume_at(now());
    return {*this};
}

Job::Job(Cluster& cluster) : cluster_(cluster) {
    for (std::uint32_t rank = 0; rank < cluster.shape().ranks(); ++rank)
        ranks_.emplace_back(*this, rank);
}

void Job::run(const std::function<Program(Rank&)>& program) {
    for (Rank& rank : ranks_) {
        rank.program_ = std::make_unique<Program>(program(rank));
        rank.resume_at(cluster_.queue().now());
    }
    const auto running = [this] {
        return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.over(); });
    };
    while (cluster_.queue().step()) {
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }
    if (running()) report_deadlock();
}

void Job::report_deadlock() const {
    constexpr std::size_t most_named = 16;
    std::string text =
        fmt::format("deadlock after {:.9f} s of virtual time:", seconds_of(cluster_.queue().now()));
    std::size_t waiting = 0;
    for (const Rank& rank : ranks_) {
        if (rank.over()) continue;
        if (++waiting <= most_named)
            text += fmt::format("\n  rank {} waits for {}", rank.number(),
                                rank.waits_for().empty() ? "nothing that is known" : rank.waits_for());
    }
    if (waiting > most_named) text += fmt::format("\n  and {} more ranks", waiting - most_named);
    throw Deadlock(text);
}

}  // namespace offpath::sim
