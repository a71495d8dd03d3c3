// Turns at the memory of windows. What one round of work does there is bounded, so that operations of many
// pieces leave time for all others.
//
// A visit has at most rma::message_segments pieces and rma::part_bytes bytes, and is executed whole. A round
// may do Config::round_pieces and round_bytes, and the rest of the visit that reaches these limits. After
// that, visits wait. The puts and gets of a lane keep their order, and so do the updates of a window. In the
// next round, lanes and windows take turns, one visit each.
//
// A small visit has one piece that a message carries. It never waits for a turn, because it costs no more
// than its message. The updates of a window still run one after the other, with origins in turns. So their
// order and atomicity do not depend on where a round ends.
#include "engine/onesided/onesided.h"

namespace offpath::engine {

bool OneSided::spent() const {
    return round_pieces_ >= core_.config.round_pieces || round_bytes_ >= core_.config.round_bytes;
}

void OneSided::account(const Visit& visit) {
    round_pieces_ += visit.segments.size();
    round_bytes_ += visit.bytes;
}

bool OneSided::may_begin(const Visit& visit) const {
    return visit.small() || (turns_.empty() && !spent());
}

// Begins a get, or a put whose operands are here: now, or when its lane has its turn.
void OneSided::touch(Visit& visit) {
    if (may_begin(visit)) return begin_access(visit);
    std::deque<Visit*>& waiting = visit.window->lanes[visit.origin].in_turns;
    visit.in_turns = true;
    waiting.push_back(&visit);
    if (waiting.size() == 1) turns_.push_back({visit.window, visit.origin});
}

// Makes the window's updates wait for their turn.
void OneSided::wait_for_turn(Window& window) {
    if (window.updates_in_turns) return;
    window.updates_in_turns = true;
    turns_.push_back({&window, every_target});
}

void OneSided::leave_turns(Visit& visit) {
    if (!visit.in_turns) return;
    visit.in_turns = false;
    std::deque<Visit*>& waiting = visit.window->lanes[visit.origin].in_turns;
    std::erase(waiting, &visit);
    if (!waiting.empty()) return;
    std::erase_if(
        turns_, [&](const Turn& turn) { return turn.window == visit.window && turn.origin == visit.origin; });
}

bool OneSided::begin_round() {
    Counters& counters = core_.counters;
    counters.most_round_pieces = std::max(counters.most_round_pieces, round_pieces_);
    counters.most_round_bytes = std::max(counters.most_round_bytes, round_bytes_);
    round_pieces_ = round_bytes_ = 0;
    bool moved = false;
    for (; !turns_.empty() && !spent(); moved = true) {
        const Turn turn = turns_.front();
        turns_.pop_front();
        Window& window = *turn.window;
        if (turn.origin == every_target) {
            window.updates_in_turns = false;
            run_updates(window, true);
            continue;
        }
        std::deque<Visit*>& waiting = window.lanes[turn.origin].in_turns;
        Visit& visit = *waiting.front();
        waiting.pop_front();
        visit.in_turns = false;
        if (!waiting.empty()) turns_.push_back(turn);
        begin_access(visit);
    }
    return moved;
}

}  // namespace offpath::engine
