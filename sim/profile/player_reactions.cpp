// What a rank does at once when a test is successful.
#include "sim/profile/player.h"

namespace offpath::sim {

bool Player::can_react(const ProfiledNode& node) const {
    const Known& known = known_[node.call];
    return (known.posts || known.action == Action::send) &&
           node.compute_s < at_once_s * static_cast<double>(node.count);
}

Player::Computation Player::computation_before(const ProfiledNode& node) {
    // Programs that look very often would make simulations slow.
    constexpr std::uint64_t most_tests = 100;
    const std::uint64_t pieces = std::min(most_tests, (node.tests + node.count / 2) / node.count) + 1;
    return {stretch_ * compute_before(node) / static_cast<double>(pieces), pieces};
}

Player::Computation Player::before_call(const ProfiledNode& node) {
    if (postponed_.calls > 0 && can_react(node)) {
        --postponed_.calls;
        return computation_before(node);
    }
    const Postponed postponed = std::exchange(postponed_, {});
    const Computation own = postponed.instead ? Computation{} : computation_before(node);
    const std::uint64_t pieces = std::max<std::uint64_t>(1, own.pieces + postponed.left.pieces);
    return {(own.all_s() + postponed.left.all_s()) / static_cast<double>(pieces), pieces};
}

bool Player::borrow(Cursor ahead, std::size_t reaction, Computation& computation) {
    const ProfiledNode* node = ahead.next();
    for (; node != nullptr && reaction > 0 && can_react(*node); --reaction)
        node = ahead.next();
    if (node == nullptr) return false;
    computation = computation_before(*node);
    return true;
}

void Player::find_reactions() {
    std::uint64_t posts = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> places;  // by number of the post
    struct Success {
        std::vector<std::uint64_t> places;
        std::uint64_t tests = 0;
        std::size_t calls = 0;
    } last;
    const auto conclude = [&] {
        for (const std::uint64_t place : last.places)
            reactions_.found(place, last.tests, last.calls);
        last = {};
    };
    Cursor cursor(profile_.sequence);
    while (const ProfiledNode* node = cursor.next()) {
        const ProfiledCall& call = profile_.calls[node->call];
        const Known& known = known_[node->call];
        if (can_react(*node))
            ++last.calls;
        else
            conclude();
        if (known.posts) {
            if (call.place != 0) places[posts] = call.place;
            ++posts;
        }
        if (known.action != Action::complete) continue;
        const std::uint64_t tests = (node->tests + node->count / 2) / node->count;
        for (const std::uint64_t ago : call.list) {
            const auto found = places.find(posts - ago);
            if (found == places.end()) continue;
            if (call.name.starts_with("Test"))
                last.places.push_back(found->second);
            else
                reactions_.waited(found->second, tests);
            places.erase(found);
        }
        last.tests = tests;
    }
    conclude();
}

std::size_t Player::reaction_to(const ProfiledCall& call) const {
    std::size_t least = 0;
    for (const std::uint64_t ago : call.list) {
        const auto found = outstanding_.find(posts_ - ago);
        if (found == outstanding_.end()) continue;
        const std::size_t calls = reactions_.calls_after(found->second.place);
        if (calls == 0) return 0;
        least = least == 0 ? calls : std::min(least, calls);
    }
    return least;
}

bool Player::goes_on_after(const ProfiledCall& call) const {
    return call.name.starts_with("Test") && std::ranges::all_of(call.list, [this](std::uint64_t ago) {
               const auto found = outstanding_.find(posts_ - ago);
               return found == outstanding_.end() || reactions_.goes_on(found->second.place);
           });
}

bool Player::is_complete(const ProfiledCall& call) const {
    return std::ranges::all_of(call.list, [this](std::uint64_t ago) {
        const auto found = outstanding_.find(posts_ - ago);
        return found == outstanding_.end() || found->second.request->over();
    });
}

}  // namespace offpath::sim
