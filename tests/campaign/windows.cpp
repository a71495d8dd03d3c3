// Steps: operations on windows.
#include "play.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::campaign {
namespace {

using engine::OneSidedCall;
using rma::OpKind;

// Operands of up to this many bytes may travel inside the call.
void set_operands(OneSidedCall& call, std::span<const std::byte> operands, bool inlined) {
    if (inlined && operands.size() <= rma::inline_bytes)
        call.inlined.assign(operands.begin(), operands.end());
    else
        call.origin = range(operands);
}

OneSidedCall access(OpKind kind, std::uint32_t target, std::uint64_t offset, std::uint64_t bytes) {
    OneSidedCall made;
    made.kind = kind;
    made.target = target;
    made.offset = offset;
    made.bytes = bytes;
    made.watched = true;
    return made;
}

// One piece, or several with gaps between them, that have `bytes` bytes in all and lie in `room` bytes.
std::vector<rma::Segment> pieces_of(std::mt19937_64& random, std::uint64_t at, std::uint64_t room,
                                    std::uint64_t bytes) {
    std::vector<rma::Segment> made;
    const std::uint64_t count = bytes < 8 || random() % 2 == 0 ? 1 : 2 + random() % 6;
    const std::uint64_t gap = (room - bytes) / count;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t piece = i + 1 < count ? bytes / count : bytes - (count - 1) * (bytes / count);
        made.push_back({at, piece});
        at += piece + gap;
    }
    return made;
}

bool start(Play& play, std::uint32_t origin, OneSidedCall access, Call& call) {
    const Status status =
        play.stage().engine(origin).one_sided(*play.window(origin).window, std::move(access), &call);
    play.began(call, status);
    return status == Status::in_progress || status == Status::ok;
}

}  // namespace

// To bytes that nothing else writes.
void put(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t origin = play.any_rank(), target = play.any_rank();
    const std::uint64_t bytes = std::max<std::uint64_t>(1, play.any_size() % 20'000);
    const std::uint64_t room = bytes + random() % 200;
    const bool inlined = random() % 2 == 0;
    const std::vector<rma::Segment> pieces = [&] {
        std::size_t& used = play.window(target).used[origin];
        if (used + room > WindowMemory::own) return std::vector<rma::Segment>{};
        const std::uint64_t at = WindowMemory::own_at(origin) + used;
        used += room;
        return pieces_of(random, at, room, bytes);
    }();
    if (pieces.empty() || !stage.present(origin)) return;
    const std::span<std::byte> data = play.buffer(bytes, {});
    fill(data, play.next_number());
    OneSidedCall access_call = access(OpKind::put, target, pieces[0].offset, bytes);
    set_operands(access_call, data, inlined);
    if (pieces.size() > 1) access_call.segments = pieces;
    Call& call = play.call(origin, only(target),
                           fmt::format("puts {} B to rank {} in {} pieces", bytes, target, pieces.size()));
    call.check = [&play, target, pieces, data] {
        std::size_t from = 0;
        for (const rma::Segment& piece : pieces) {
            const auto written = std::span(play.window(target).bytes).subspan(piece.offset, piece.bytes);
            if (std::string what = difference(written, data.subspan(from, piece.bytes)); !what.empty())
                return what;
            from += piece.bytes;
        }
        return std::string();
    };
    start(play, origin, std::move(access_call), call);
}

// From bytes that never change.
void get(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t origin = play.any_rank(), target = play.any_rank();
    const std::uint64_t bytes = std::max<std::uint64_t>(1, play.any_size() % 20'000);
    const std::uint64_t room = bytes + random() % 200;
    const std::uint64_t at = WindowMemory::fixed_at + random() % (WindowMemory::fixed - room);
    const std::vector<rma::Segment> pieces = pieces_of(random, at, room, bytes);
    if (!stage.present(origin)) return;
    const std::span<std::byte> result = play.buffer(bytes, std::byte{0xEE});
    OneSidedCall access_call = access(OpKind::get, target, at, bytes);
    access_call.result = range(result);
    if (pieces.size() > 1) access_call.segments = pieces;
    Call& call = play.call(origin, only(target),
                           fmt::format("gets {} B of rank {} in {} pieces", bytes, target, pieces.size()));
    call.written = result;
    call.check = [target, pieces, result] {
        std::vector<std::byte> wanted;
        for (const rma::Segment& piece : pieces)
            for (std::uint64_t i = 0; i < piece.bytes; ++i)
                wanted.push_back(byte_of(target, piece.offset - WindowMemory::fixed_at + i));
        return difference(result, wanted);
    };
    start(play, origin, std::move(access_call), call);
}

// Adds one to a counter, or to many; a counter may be fetched.
void update(Play& play) {
    auto& random = play.random();
    Stage& stage = play.stage();
    const std::uint32_t origin = play.any_rank(), target = play.any_rank();
    const bool wide = random() % 4 == 0, fetches = !wide && random() % 2 == 0, inlined = random() % 2 == 0;
    // The upper half of the counters is for locked increments.
    const std::size_t counter = random() % (WindowMemory::counters / 2);
    if (!stage.present(origin)) return;
    const std::size_t count = wide ? WindowMemory::wide : 1;
    const std::span<std::byte> ones = play.buffer(count * 8, {});
    for (std::size_t i = 0; i < count; ++i)
        ones[i * 8] = std::byte{1};
    OneSidedCall access_call = access(fetches ? OpKind::get_accumulate : OpKind::accumulate, target,
                                      wide ? WindowMemory::wide_at : counter * 8, count * 8);
    access_call.type = static_cast<std::uint8_t>(schedule::DataType::uint64);
    access_call.reduction = static_cast<std::uint8_t>(schedule::Reduction::sum);
    set_operands(access_call, ones, inlined);
    Call& call =
        play.call(origin, only(target), fmt::format("adds to {} counters of rank {}", count, target));
    Play::Additions& additions = play.additions(target, wide ? WindowMemory::counters : counter);
    if (fetches) {
        call.written = play.buffer(8, std::byte{0xEE});
        access_call.result = range(call.written);
        call.check = [&additions, result = call.written] {
            std::uint64_t value = 0;
            std::memcpy(&value, result.data(), 8);
            additions.fetched.push_back(value);
            return std::string();
        };
    }
    if (wide)
        call.check = [&play, target] {
            const auto of = [&](std::size_t i) {
                std::uint64_t value = 0;
                std::memcpy(&value, play.window(target).bytes.data() + WindowMemory::wide_at + i * 8, 8);
                return value;
            };
            const bool excused = play.stage().excused(play.stage().everybody());
            for (std::size_t i = 1; !excused && i < WindowMemory::wide; ++i)
                if (of(i) != of(0)) return fmt::format("element {} is {}, the first {}", i, of(i), of(0));
            return std::string();
        };
    if (start(play, origin, std::move(access_call), call)) additions.calls.push_back(&call);
}

namespace {

// Locks, reads a counter, writes it plus one, unlocks. Nobody else may have the lock meanwhile.
class Increment final : public Actor {
  public:
    Increment(Play& play, std::uint32_t origin, std::uint32_t target, std::size_t counter, bool shared)
        : play_(play), origin_(origin), target_(target), offset_(counter * 8), shared_(shared) {}
    bool act() override {
        if (!play_.stage().present(origin_)) return true;
        if (next_ == Next::lock && !play_.take_lock(origin_, target_)) return false;
        const bool over = go_on();
        if (over) play_.leave_lock(origin_, target_);
        return over;
    }
    std::string text() const override {
        return fmt::format("rank {}'s use of a lock at rank {}", origin_, target_);
    }

  private:
    enum class Next : std::uint8_t { lock, get, put, unlock, nothing };
    bool go_on() {
        if (call_ != nullptr && !call_->status) return false;
        const bool well = call_ == nullptr || call_->well();
        switch (next_) {
            case Next::lock:
                begin(access(shared_ ? OpKind::lock_shared : OpKind::lock_exclusive, target_, 0, 0), "locks");
                next_ = shared_ ? Next::unlock : Next::get;
                return false;
            case Next::get: {
                if (!well) return true;
                OneSidedCall get = access(OpKind::get, target_, offset_, 8);
                value_ = play_.buffer(8, {});
                get.result = range(value_);
                begin(std::move(get), "reads, with the lock,", value_);
                next_ = Next::put;
                return false;
            }
            case Next::put: {
                next_ = Next::unlock;
                if (!well) return go_on();
                const std::span<std::byte> data = play_.buffer(8, {});
                std::uint64_t value = 0;
                std::memcpy(&value, value_.data(), 8);
                ++value;
                std::memcpy(data.data(), &value, 8);
                OneSidedCall put = access(OpKind::put, target_, offset_, 8);
                put.origin = range(data);
                begin(std::move(put), "writes, with the lock,");
                play_.additions(target_, offset_ / 8).calls.push_back(call_);
                return false;
            }
            case Next::unlock:
                if (shared_ && !well) return true;
                begin(access(OpKind::unlock, target_, 0, 0), "unlocks");
                next_ = Next::nothing;
                return false;
            default:
                return true;
        }
    }
    void begin(OneSidedCall access, const char* what, std::span<std::byte> written = {}) {
        // Who waits for a lock waits for all who hold it or come before.
        const RankSet involved = access.kind == OpKind::lock_exclusive || access.kind == OpKind::lock_shared
                                     ? play_.stage().everybody()
                                     : only(target_);
        call_ = &play_.call(origin_, involved, fmt::format("{} at rank {}", what, target_));
        call_->written = written;
        start(play_, origin_, std::move(access), *call_);
    }
    Play& play_;
    const std::uint32_t origin_, target_;
    const std::uint64_t offset_;
    const bool shared_;
    Next next_ = Next::lock;
    Call* call_ = nullptr;
    std::span<std::byte> value_;
};

}  // namespace

void locked_increment(Play& play) {
    auto& random = play.random();
    const std::size_t count = 1 + random() % 3;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t origin = play.any_rank(), target = play.any_rank() / 2;
        const std::size_t counter = WindowMemory::counters / 2 + random() % 2;
        play.act(std::make_unique<Increment>(play, origin, target, counter, random() % 4 == 0));
    }
}

void flush(Play& play) {
    Stage& stage = play.stage();
    const std::uint32_t origin = play.any_rank(), target = play.any_rank();
    const bool all = play.random()() % 2 == 0;
    if (!stage.present(origin)) return;
    Call& call = play.call(origin, all ? stage.everybody() : only(target),
                           all ? "flushes all" : fmt::format("flushes rank {}", target));
    play.began(call, stage.engine(origin).flush_window(*play.window(origin).window,
                                                       all ? engine::every_target : target, &call));
}

}  // namespace offpath::campaign
