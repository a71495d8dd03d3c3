#include "profile/recorder.h"

#include "profile/clock.h"

#include <algorithm>
#include <cstring>

namespace offpath::profile {
namespace {

// The thread's CPU time costs a system call: it is read only around intervals of this many ticks, between 5
// and 50 microseconds on today's machines.
constexpr std::uint64_t long_interval = 50'000;
// Iterations whose clocks are not read, after one whose clocks are, and how many ticks they may take.
constexpr std::uint64_t least_timed_rounds = 64, most_untimed_rounds = 255, least_untimed_rounds = 4;
constexpr std::uint64_t longest_rest = 4 * long_interval;
// The part of such iterations' time that may be more than expected.
constexpr double most_surplus = 0.05;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 32);
}

std::uint64_t hash_of(const CallKind& kind) {
    std::uint64_t hash =
        mix(reinterpret_cast<std::uintptr_t>(kind.name), reinterpret_cast<std::uintptr_t>(kind.site));
    hash = mix(hash, (std::uint64_t{kind.comm} << 32) | static_cast<std::uint32_t>(kind.peer));
    hash = mix(hash, (std::uint64_t{static_cast<std::uint32_t>(kind.tag)} << 32) ^ kind.bytes);
    if (kind.window != 0) hash = mix(hash, kind.window);
    if (kind.other_peer != -3)
        hash =
            mix(hash, (std::uint64_t{static_cast<std::uint32_t>(kind.other_peer)} << 32) ^ kind.other_bytes);
    for (const std::uint64_t value : kind.list)
        hash = mix(hash, value);
    return hash;
}

bool alike(const CallKind& a, const CallKind& b) {
    return a.name == b.name && a.site == b.site && a.comm == b.comm && a.window == b.window &&
           a.peer == b.peer && a.tag == b.tag && a.bytes == b.bytes && a.other_peer == b.other_peer &&
           a.other_tag == b.other_tag && a.other_bytes == b.other_bytes && std::ranges::equal(a.list, b.list);
}

std::uint64_t bits_of(MPI_Request request) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &request, sizeof request);
    return bits;
}

}  // namespace

Recorder::Reading Recorder::read_clocks(std::uint64_t now) {
    return {now, nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_THREAD_CPUTIME_ID)};
}

std::uint64_t Recorder::preempted(std::uint64_t now) {
    const Reading before = reading_;
    reading_ = read_clocks(now);
    const std::uint64_t wall = reading_.wall_ns - before.wall_ns, cpu = reading_.cpu_ns - before.cpu_ns;
    if (cpu >= wall) return 0;
    const double share = static_cast<double>(wall - cpu) / static_cast<double>(wall);
    return static_cast<std::uint64_t>(share * static_cast<double>(now - before.ticks));
}

void Recorder::enter() {
    entered_ = ticks();
    if (resting_) return end_rest();
    add_compute(entered_ - left_);
}

void Recorder::add_compute(std::uint64_t compute) {
    if (compute >= long_interval) {
        // What was lost since the last reading was lost here: a shorter interval would have been long too.
        const std::uint64_t lost = std::min(preempted(entered_), compute);
        compute -= lost;
        preempted_ += lost;
    }
    compute_ += compute;
    total_compute_ += compute;
}

void Recorder::rest_if_useful() {
    if (sequence_.timed_rounds() == 0) rest_from_ = least_timed_rounds;
    if (sequence_.timed_rounds() < rest_from_) return;
    const std::vector<Node>& body = sequence_.body();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
        const Times& its = sequence_.timed()[i];
        if (kinds_[body[i].call].message.name == nullptr || its.tests != 0) return;
        sum += its.compute + its.inside;
    }
    const std::uint64_t rounds = longest_rest * sequence_.timed_rounds() / std::max<std::uint64_t>(1, sum);
    if (rounds < least_untimed_rounds) return;
    untimed_ = untimed_left_ = std::min(rounds, most_untimed_rounds) * body.size();
    rest_.clear();
    for (const Node& node : body)
        rest_.push_back(kinds_[node.call].message);
    expected_ = rest_.data();
    resting_ = true;
}

void Recorder::end_rest() {
    resting_ = false;
    expected_ = nullptr;
    sequence_.append_untimed(untimed_ - untimed_left_);
    const std::uint64_t elapsed = entered_ - left_;
    const double usual = sequence_.usual_ticks(false), with_next = sequence_.usual_ticks(true);
    if (std::exchange(untimed_left_, 0) != 0) {
        // Another call than the loop's next one: what the untimed calls did not take came before it.
        const double taken = std::min(static_cast<double>(elapsed), usual);
        const double factor = usual > 0 ? taken / usual : 0;
        total_compute_ += sequence_.settle(factor, factor);
        return add_compute(elapsed - static_cast<std::uint64_t>(taken));
    }
    const double factor = static_cast<double>(elapsed) / std::max(1.0, with_next);
    const double ran = part_that_ran(static_cast<double>(elapsed), with_next);
    const std::uint64_t computed = sequence_.settle(factor * ran, factor);
    const auto next = static_cast<std::uint64_t>(factor * ran * (with_next - usual));
    preempted_ += static_cast<std::uint64_t>(static_cast<double>(computed + next) * (1 / ran - 1));
    compute_ += next;
    total_compute_ += computed + next;
}

// The part of a rest in which the thread ran. Notes whether the rest was longer than expected.
double Recorder::part_that_ran(double elapsed, double expected) {
    rested_ += elapsed;
    const double surplus = elapsed - expected;
    if (surplus < long_interval) return 1;
    const double lost = std::min(surplus, static_cast<double>(preempted(entered_)));
    // Nobody knows which of the calls lasted longer, or which computation. If the time in question is a part
    // that matters, the next rest is far away.
    surplus_ += surplus - lost;
    if (surplus_ > most_surplus * rested_) rest_from_ = 2 * sequence_.timed_rounds();
    return std::max(1e-3, 1 - lost / elapsed);
}

void Recorder::leave_unrecorded() {
    left_ = ticks();
    inside_ = left_ - entered_;
    if (inside_ >= long_interval) reading_ = read_clocks(left_);
}

void Recorder::leave_in_vain() {
    leave_unrecorded();
    ++tests_;
    polled_ += inside_;
}

std::uint32_t Recorder::leave(const CallKind& kind, const Message* message) {
    leave_unrecorded();
    const std::uint32_t number = number_of(kind);
    if (message != nullptr) kinds_[number].message = *message;
    const Times times{compute_, inside_, tests_, compute_ < long_interval ? 1U : 0U};
    compute_ = tests_ = 0;
    const std::uint64_t lost = sequence_.lost();
    sequence_.append(number, times);
    if (sequence_.between_iterations()) rest_if_useful();
    if (sequence_.lost() != lost) {
        Kind& its = kinds_[number];
        ++its.lost_count;
        its.lost.compute += times.compute;
        its.lost.inside += times.inside;
        its.lost.tests += times.tests;
    }
    return number;
}

std::uint32_t Recorder::number_of(const CallKind& kind) {
    // Programs repeat themselves: the kind that followed the last one is tried first.
    std::uint32_t& guess = after_[last_kind_];
    if (guess < kinds_.size() && alike(kinds_[guess].kind, kind)) return last_kind_ = guess;
    const std::uint64_t hash = hash_of(kind);
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash & mask;
    for (; table_[slot] != 0; slot = (slot + 1) & mask) {
        const Kind& known = kinds_[table_[slot] - 1];
        if (known.hash == hash && alike(known.kind, kind)) return last_kind_ = guess = table_[slot] - 1;
    }
    if (kinds_.size() >= most_kinds && (kind.site != nullptr || kind.comm != 0)) {
        CallKind any;
        any.name = kind.name;
        return number_of(any);
    }
    const auto number = static_cast<std::uint32_t>(kinds_.size());
    guess = number;
    Kind added;
    added.kind = kind;
    added.list.assign(kind.list.begin(), kind.list.end());
    added.kind.list = added.list;
    added.hash = hash;
    kinds_.push_back(std::move(added));
    after_.push_back(UINT32_MAX);
    table_[slot] = number + 1;
    return last_kind_ = number;
}

void Recorder::note_arrival(std::uint32_t number) {
    Communicator& comm = known_[kinds_[number].kind.comm - 1];
    const std::uint64_t occurrence = comm.collectives++;
    if (occurrence % arrival_stride_ != 0) return;
    if (arrivals_.size() >= most_arrivals) {
        // All ranks number a communicator's collectives alike, so what they keep has a common part.
        arrival_stride_ *= 2;
        std::erase_if(arrivals_, [this](const Arrival& one) { return one.number % arrival_stride_ != 0; });
        if (occurrence % arrival_stride_ != 0) return;
    }
    arrivals_.push_back({kinds_[number].kind.comm, number, occurrence, entered_, inside_});
}

std::uint32_t Recorder::leave_collective(const CallKind& kind) {
    const std::uint32_t number = leave(kind);
    if (kind.comm != 0 && kinds_[number].kind.comm != 0) note_arrival(number);
    return number;
}

// Outstanding requests: a hash table with linear probing. A handle may be there twice, as MPICH has one for
// all operations that are complete at once.
std::size_t Recorder::slot_of(MPI_Request request) const {
    return mix(0, bits_of(request)) & (outstanding_.size() - 1);
}

void Recorder::grow() {
    std::vector<Outstanding> old = std::exchange(
        outstanding_, std::vector<Outstanding>(std::max<std::size_t>(64, outstanding_.size() * 2)));
    for (const Outstanding& one : old) {
        if (!one.used) continue;
        std::size_t slot = slot_of(one.request);
        while (outstanding_[slot].used)
            slot = (slot + 1) & (outstanding_.size() - 1);
        outstanding_[slot] = one;
    }
}

void Recorder::posted(MPI_Request request, std::uint32_t kind) {
    const std::uint64_t post = posts_++;
    if (request == MPI_REQUEST_NULL) return;
    if (2 * outstanding_count_ >= outstanding_.size()) grow();
    std::size_t slot = slot_of(request);
    while (outstanding_[slot].used)
        slot = (slot + 1) & (outstanding_.size() - 1);
    outstanding_[slot] = {request, post, total_compute_, kind, true};
    ++outstanding_count_;
}

std::uint64_t Recorder::posts_ago(MPI_Request request) const {
    if (request == MPI_REQUEST_NULL || outstanding_.empty()) return 0;
    for (std::size_t slot = slot_of(request); outstanding_[slot].used;
         slot = (slot + 1) & (outstanding_.size() - 1))
        if (outstanding_[slot].request == request) return posts_ - outstanding_[slot].post;
    return 0;
}

void Recorder::completed(MPI_Request request, std::uint64_t waited) {
    if (request == MPI_REQUEST_NULL || outstanding_.empty()) return;
    const std::size_t mask = outstanding_.size() - 1;
    std::size_t slot = slot_of(request);
    while (outstanding_[slot].used && outstanding_[slot].request != request)
        slot = (slot + 1) & mask;
    if (!outstanding_[slot].used) return;
    OutstandingTime& window = kinds_[outstanding_[slot].kind].window;
    ++window.count;
    window.compute += total_compute_ - outstanding_[slot].compute;
    window.waited += waited;
    --outstanding_count_;
    // Moves later entries of the same run up, so that none is cut off from its slot.
    for (std::size_t next = (slot + 1) & mask; outstanding_[next].used; next = (next + 1) & mask) {
        const std::size_t home = slot_of(outstanding_[next].request);
        if (((next - home) & mask) < ((next - slot) & mask)) continue;
        outstanding_[slot] = outstanding_[next];
        slot = next;
    }
    outstanding_[slot].used = false;
}

void Recorder::persistent(MPI_Request request, const CallKind& kind) {
    persistent_[request] = kind;
}

const CallKind* Recorder::persistent_kind(MPI_Request request) const {
    const auto found = persistent_.find(request);
    return found == persistent_.end() ? nullptr : &found->second;
}

void Recorder::communicator_made(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) return;
    int is_inter = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0) return;
    Communicator made;
    MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int size = 0;
    PMPI_Comm_rank(comm, &made.rank);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    std::vector<int> own(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i)
        own[static_cast<std::size_t>(i)] = i;
    made.members.resize(own.size());
    PMPI_Group_translate_ranks(group, size, own.data(), world, made.members.data());
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    for (const Communicator& other : known_)
        made.occurrence += other.members == made.members;
    known_.push_back(std::move(made));
    communicators_[comm] = static_cast<std::uint32_t>(known_.size());
    last_comm_ = MPI_COMM_NULL;
    last_comm_number_ = 0;
}

std::uint32_t Recorder::communicator(MPI_Comm comm) {
    if (comm == last_comm_) return last_comm_number_;
    const auto found = communicators_.find(comm);
    last_comm_ = comm;
    return last_comm_number_ = found == communicators_.end() ? 0 : found->second;
}

void Recorder::communicator_freed(MPI_Comm comm) {
    communicators_.erase(comm);
    last_comm_ = MPI_COMM_NULL;
    last_comm_number_ = 0;
}

std::uint32_t Recorder::window(MPI_Win win) const {
    const auto found = std::ranges::find(windows_, win, &Window::handle);
    return found == windows_.end() ? 0 : static_cast<std::uint32_t>(found - windows_.begin()) + 1;
}

void Recorder::window_made(MPI_Win win, MPI_Comm comm, std::uint64_t bytes, bool allocated) {
    const std::uint32_t number = communicator(comm);
    if (win == MPI_WIN_NULL || number == 0) return;
    // All ranks make and free a communicator's windows in one order, so all choose the same one.
    auto free = std::ranges::find_if(
        windows_, [number](const Window& one) { return one.handle == MPI_WIN_NULL && one.comm == number; });
    if (free == windows_.end()) free = windows_.insert(free, Window{number, 0, allocated, MPI_WIN_NULL});
    free->handle = win;
    free->bytes = std::max(free->bytes, bytes);
    free->allocated = free->allocated && allocated;
}

void Recorder::window_freed(MPI_Win win) {
    for (Window& one : windows_)
        if (one.handle == win) one.handle = MPI_WIN_NULL;
}

}  // namespace offpath::profile
