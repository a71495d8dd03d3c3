#include "play.h"

#include <fmt/format.h>

#include <algorithm>

namespace offpath::campaign {

using Kind = Step::Kind;

namespace {
// Without the end of a call for so long, nothing ends any more: many times the silence that loses a proxy.
constexpr std::uint64_t patience_us = 20 * silence_ns / 1000;
}  // namespace

std::string difference(std::span<const std::byte> got, std::span<const std::byte> wanted) {
    const auto [a, b] = std::ranges::mismatch(got, wanted);
    if (a == got.end() && b == wanted.end()) return {};
    if (a == got.end() || b == wanted.end())
        return fmt::format("{} bytes instead of {}", got.size(), wanted.size());
    return fmt::format("byte {} of {} is {} instead of {}", a - got.begin(), got.size(), static_cast<int>(*a),
                       static_cast<int>(*b));
}

bool Call::must_end() const {
    return !abandoned && std::ranges::none_of(partners, [](const Call* each) { return each->failed(); }) &&
           !(from_anybody && play->stage().excused(involved));
}

Play::Play(const Scenario& scenario, Flaw flaw)
    : scenario_(scenario),
      random_(scenario.seed),
      windows_(scenario.ranks),
      additions_(scenario.ranks, std::vector<Additions>(WindowMemory::counters + 1)),
      stage_(scenario, flaw) {}

void Play::say(const std::string& what) {
    verdict_.trace += fmt::format("{:>8} us: {}\n", stage_.now_us(), what);
}

void Play::wrong(const std::string& what) {
    say("WRONG: " + what);
    if (verdict_.fault.empty()) verdict_.fault = what;
}

std::span<std::byte> Play::buffer(std::size_t bytes, std::byte fill) {
    return buffers_.emplace_back(bytes, fill);
}

std::size_t Play::any_size() {
    switch (random_() % 8) {
        case 0:
            return 0;
        case 1:
        case 2:
        case 3:
            return 1 + random_() % 300;
        case 4:
        case 5:
        case 6:
            return 1 + random_() % 9000;
        default:
            return 1 + random_() % 60'000;
    }
}

Call& Play::call(std::uint32_t rank, RankSet involved, std::string text) {
    Call& made = calls_.emplace_back();
    made.function = [](Completion* self, Status status) {
        auto& ended = static_cast<Call&>(*self);
        ended.play->ended(ended, status);
    };
    made.play = this;
    made.number = static_cast<int>(calls_.size());
    made.text = std::move(text);
    made.rank = rank;
    made.involved = involved | only(rank);
    ++verdict_.calls;
    say(fmt::format("{} begins: rank {}, {}", made.number, rank, made.text));
    return made;
}

void Play::began(Call& call, Status status) {
    if (status != Status::in_progress) ended(call, status);
}

void Play::ended(Call& call, Status status) {
    say(fmt::format("{} ends, {}", call.number, to_string(status)));
    if (call.status) return wrong(fmt::format("{} ({}) ends twice", call.number, call.text));
    if (call.abandoned) return wrong(fmt::format("{} ({}) ends after its session", call.number, call.text));
    call.status = status;
    last_end_us_ = stage_.now_us();
    call.at_end.assign(call.written.begin(), call.written.end());
    if (status == call.expected || (call.may_be_canceled && status == Status::canceled)) return;
    if (!is_error(status))
        return wrong(fmt::format("{} ({}) ends with {} instead of {}", call.number, call.text,
                                 to_string(status), to_string(call.expected)));
    if (!stage_.excused(call.involved))
        wrong(fmt::format("{} ({}) fails without a reason: {}", call.number, call.text, to_string(status)));
}

void Play::rounds(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        stage_.round();
        abandon();
        std::erase_if(actors_, [](const auto& actor) { return actor->act(); });
    }
}

// Calls of ranks that are gone do not end any more.
void Play::abandon() {
    for (Call& call : calls_) {
        if (call.status || call.abandoned || !stage_.gone(call.rank)) continue;
        call.abandoned = true;
        call.at_end.assign(call.written.begin(), call.written.end());
    }
    for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank)
        if (stage_.gone(rank) && windows_[rank].at_end.empty()) windows_[rank].at_end = windows_[rank].bytes;
}

bool Play::over() const {
    return actors_.empty() &&
           std::ranges::all_of(calls_, [](const Call& call) { return call.status || !call.must_end(); });
}

void Play::make_windows() {
    for (std::uint32_t rank = 0; rank < stage_.ranks(); ++rank) {
        WindowMemory& made = windows_[rank];
        made.bytes.resize(WindowMemory::size(stage_.ranks()), std::byte{0xA5});
        std::fill_n(made.bytes.begin(), WindowMemory::fixed_at, std::byte{0});
        fill(std::span(made.bytes).subspan(WindowMemory::fixed_at, WindowMemory::fixed), rank);
        made.used.resize(stage_.ranks());
        const Status status =
            stage_.engine(rank).create_window(stage_.team(rank), 3, range(made.bytes), false, &made.window);
        if (status != Status::ok) wrong(fmt::format("a window cannot be made: {}", to_string(status)));
    }
}

void Play::fault(const Step& step) {
    const std::uint32_t rank = any_rank();
    const auto proxy = static_cast<std::uint32_t>(random_() % stage_.proxies());
    const auto other = static_cast<std::uint32_t>(random_() % stage_.proxies());
    const std::uint64_t part = random_() % 1000;
    switch (step.kind) {
        case Kind::close_rank:
            say(fmt::format("-- rank {} ends", rank));
            return stage_.close_rank(rank, Status::peer_lost);
        case Kind::kill_proxy:
            say(fmt::format("-- proxy {} dies", proxy));
            return stage_.kill_proxy(proxy);
        case Kind::short_stop:
            say(fmt::format("-- proxy {} stops for a moment", proxy));
            return stage_.stop_proxy(proxy, silence_ns / 2 * part / 1000, false);
        case Kind::long_stop:
            say(fmt::format("-- proxy {} stops for long", proxy));
            return stage_.stop_proxy(proxy, silence_ns + 4 * silence_ns * part / 1000, true);
        case Kind::lose_link:
            say(fmt::format("-- the link of proxies {} and {} breaks", proxy, other));
            return stage_.lose_link(proxy, other);
        case Kind::forbid:
            say(fmt::format("-- the memory of rank {} cannot be accessed any more", rank));
            return stage_.forbid(rank);
        default:
            say("-- rubbish arrives");
            return stage_.send_rubbish(random_());
    }
}

void Play::take(const Step& step) {
    random_.seed(step.seed);
    switch (step.kind) {
        case Kind::collective:
            return collective(*this);
        case Kind::basic:
            return basic_messages(*this);
        case Kind::any_source:
            return messages_from_anybody(*this);
        case Kind::keyed:
            return keyed_message(*this);
        case Kind::put:
            return put(*this);
        case Kind::get:
            return get(*this);
        case Kind::update:
            return update(*this);
        case Kind::increment:
            return locked_increment(*this);
        case Kind::flush:
            return flush(*this);
        case Kind::pause:
            return rounds(1 + random_() % 60);
        default:
            fault(step);
            return abandon();
    }
}

// Beats go on for ever, so it is time that decides. It runs fast where nothing moves.
bool Play::settle(const std::function<bool()>& done) {
    const std::uint64_t until = stage_.now_us() + patience_us;
    for (last_end_us_ = 0; !done() && stage_.now_us() < std::max(until, last_end_us_ + patience_us);)
        rounds(1);
    return done();
}

Verdict Play::run() {
    say(scenario_.text());
    make_windows();
    for (const Step& step : scenario_.steps) {
        take(step);
        rounds(random_() % 4);
    }
    settle([this] { return over(); });
    judge();
    end_windows();
    end_sessions();
    for (const Call& call : calls_)
        if (call.well()) ++verdict_.ended_well;
    return std::move(verdict_);
}

Verdict play(const Scenario& scenario, Flaw flaw) {
    return Play(scenario, flaw).run();
}

}  // namespace offpath::campaign
