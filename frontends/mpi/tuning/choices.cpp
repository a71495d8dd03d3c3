#include "choices.h"

#include <algorithm>

namespace offpath::mpi {
namespace {

// An operation that takes less than a few microseconds is not worth two readings of the clock.
constexpr std::uint64_t least_sampled_bytes = 4096;
// Without a table, the device is tried from this fraction of the switch-over on.
constexpr std::uint64_t tried_below_switch_over = 8;
// The slot of an operation whose bytes no rank knows. Others have at least least_sampled_bytes.
constexpr std::uint64_t any_bytes = 0;
constexpr std::size_t most_slots = 64;  // keeps the message of one agreement small

std::size_t index(Op op) {
    return static_cast<std::size_t>(op);
}

std::uint64_t at_least_one(std::uint64_t bytes) {
    return std::max<std::uint64_t>(bytes, 1);
}

}  // namespace

Choices::Choices(const Selection& selection, const Table& table, TeamShape shape,
                 std::uint64_t first_trial_after, std::span<const LearnedRow> remembered)
    : table_(&table),
      shape_(shape),
      first_trial_after_(selection.given ? 0 : first_trial_after),
      remembered_(remembered),
      asked_for_(selection.ops) {
    ops_ = selection.ops;
    for (std::size_t i = 0; i < op_count; ++i) {
        const Op op = static_cast<Op>(i);
        Threshold& threshold = thresholds_[i];
        threshold.bytes = threshold.blocking = selection.threshold(op);
        threshold.source = selection.given ? Source::given : Source::fixed;
        const std::vector<TableRow> measured =
            selection.given ? std::vector<TableRow>{} : table.nearest(op, shape);
        if (measured.empty()) continue;
        threshold.bytes = switch_over(measured, false);
        threshold.blocking = switch_over(measured, true);
        threshold.source = Source::table;
    }
    find_small_sizes();
}

void Choices::find_small_sizes() {
    for (std::size_t i = 0; i < op_count; ++i) {
        const Op op = static_cast<Op>(i);
        const std::uint64_t least = threshold(op, Form::nonblocking);
        const std::uint64_t unmeasured =
            first_trial_after_ == 0 ? least : std::min(least, least_sampled_bytes);
        small_below_[i] = enabled(op, Form::nonblocking) ? unmeasured : 0;
    }
}

std::uint64_t Choices::threshold(Op op, Form form) const {
    const Threshold& threshold = thresholds_[index(op)];
    // A blocking call named in OFFPATH_OPS goes to the device wherever the non-blocking one would.
    const bool by_cost = form == Form::blocking && !asked_for_.has(op, Form::blocking);
    return at_least_one(by_cost ? threshold.blocking : threshold.bytes);
}

bool Choices::enabled(Op op, Form form) const {
    if (ops_.has(op, form)) return true;
    // A blocking call that was not named goes to the device where measurements say that it is faster.
    return form == Form::blocking && ops_.has(op, Form::nonblocking) &&
           thresholds_[index(op)].source == Source::table && !asked_for_.has(op, Form::blocking);
}

HostReason Choices::why_off(Op op, Form form) const {
    return asked_for_.has(op, form) ? HostReason::turned_off : HostReason::switched_off;
}

bool Choices::count_call(Op op, Form form) {
    // Calls are ordered, so only one thread writes at a time.
    const std::uint64_t call = calls_.load(std::memory_order_relaxed);
    calls_.store(call + 1, std::memory_order_relaxed);
    if (switches_pending_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(mutex_);
        while (!switches_.empty() && switches_.front().from <= call) {
            ops_ = switches_.front().ops;
            switches_.erase(switches_.begin());
        }
        find_small_sizes();
        switches_pending_.store(!switches_.empty(), std::memory_order_release);
    }
    return enabled(op, form);
}

Choice Choices::next(Op op, Form form, std::uint64_t bytes, Engines engines) {
    Choice choice;
    choice.engines = engines;
    if (!count_call(op, form)) {
        choice.reason = why_off(op, form);
        return choice;
    }
    choice.device = bytes >= threshold(op, form);
    choice.first = first_of(op, form, bytes);
    const bool follows = first_trial_after_ != 0 && engines == Engines::any;
    if (follows && form == Form::nonblocking && bytes >= least_sampled_bytes) {
        Slot* slot = find_slot(op, bytes);
        if (slot == nullptr) slot = make_slot(op, bytes, choice.device);
        if (slot != nullptr) {
            choice.sampled = slot;
            choice.call = slot->next();
            choice.device = choice.call.engine == Engine::device;
        }
    }
    if (!choice.device)
        choice.reason = bytes < threshold(op, form) ? HostReason::small : HostReason::measured;
    return choice;
}

Choice Choices::next_by_parts(Op op, Form form) {
    Choice choice;
    choice.device = count_call(op, form);
    if (!choice.device) choice.reason = why_off(op, form);
    if (!choice.device || form != Form::nonblocking || first_trial_after_ == 0 || !traits(op).synchronizes)
        return choice;
    Slot* slot = find_slot(op, any_bytes);
    if (slot == nullptr) slot = make_slot(op, any_bytes, true);
    if (slot == nullptr) return choice;
    choice.sampled = slot;
    choice.call = slot->next();
    choice.device = choice.call.engine == Engine::device;
    if (!choice.device) choice.reason = HostReason::measured;
    return choice;
}

bool Choices::first_of(Op op, Form form, std::uint64_t bytes) {
    std::uint64_t& seen = seen_[form == Form::blocking ? 1 : 0][index(op)];
    const std::uint64_t bit = std::uint64_t{1} << std::min(size_class(bytes), 63U);
    const bool first = (seen & bit) == 0;
    seen |= bit;
    return first;
}

void Choices::switch_at(std::uint64_t from, OpSet ops) {
    const std::lock_guard lock(mutex_);
    while (!switches_.empty() && switches_.back().from >= from)
        switches_.pop_back();
    switches_.push_back({from, ops});
    switches_pending_.store(true, std::memory_order_release);
}

Slot* Choices::find_slot(Op op, std::uint64_t bytes) const {
    for (const auto& slot : slots_) {
        if (slot->op() == op && size_class(slot->bytes()) == size_class(bytes)) return slot.get();
    }
    return nullptr;
}

// Null if there is nothing to learn, or if there are too many slots.
Slot* Choices::make_slot(Op op, std::uint64_t bytes, bool device) {
    const std::uint64_t least = at_least_one(thresholds_[index(op)].bytes) / tried_below_switch_over;
    std::vector<TableRow> rows;
    if (bytes != any_bytes) rows = table_->nearest(op, shape_);
    const LearnedRow* const known = find_row(remembered_, op, shape_, bytes);
    const bool open = device || bytes >= least || at_size(rows, bytes).has_value() || known != nullptr;
    if (!open || slots_.size() >= most_slots) return nullptr;
    slots_.push_back(std::make_unique<Slot>(op, bytes, device ? Engine::device : Engine::host,
                                            std::move(rows), least, first_trial_after_,
                                            known != nullptr ? &known->what : nullptr));
    return slots_.back().get();
}

std::vector<LearnedRow> Choices::learned() const {
    const std::lock_guard lock(mutex_);
    std::vector<LearnedRow> rows;
    for (const auto& slot : slots_) {
        const std::optional<Remembered> what = slot->learned();
        if (what) rows.push_back({slot->op(), shape_, slot->bytes(), slot->calls(), *what});
    }
    return rows;
}

void Choices::add_sample(Slot& slot, const Slot::Call& call, const Sample& sample) {
    const std::lock_guard lock(mutex_);
    slot.add(call, sample);
}

bool Choices::wants_agreement_soon() const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const auto& slot) { return slot->wants_agreement_soon(); });
}

bool Choices::awaits_agreement(std::uint64_t in_flight, std::uint64_t delay) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
        return slot->wants_agreement_soon() || slot->awaits_agreement(in_flight, delay);
    });
}

void Choices::pass_over() {
    const std::lock_guard lock(mutex_);
    for (Slot* slot : agreeing_)
        slot->pass_over();
}

std::vector<std::uint64_t> Choices::contribute() {
    const std::lock_guard lock(mutex_);
    agreeing_.clear();
    std::vector<std::uint64_t> words;
    for (const auto& slot : slots_) {
        if (!slot->takes_part()) continue;
        agreeing_.push_back(slot.get());
        const Slot::Words own = slot->contribute();
        words.insert(words.end(), own.begin(), own.end());
    }
    return words;
}

std::vector<const Slot*> Choices::conclude(std::span<const std::uint64_t> sums, std::uint64_t ranks,
                                           std::uint64_t elapsed_ns) {
    const std::lock_guard lock(mutex_);
    std::vector<const Slot*> changed;
    std::size_t from = 0;
    for (Slot* slot : agreeing_) {
        Slot::Words own;
        std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(from), own.size(), own.begin());
        from += own.size();
        if (slot->conclude(own, ranks, elapsed_ns)) changed.push_back(slot);
    }
    return changed;
}

}  // namespace offpath::mpi
