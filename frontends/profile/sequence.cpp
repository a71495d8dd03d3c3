#include "profile/sequence.h"

#include <algorithm>
#include <utility>

namespace offpath::profile {
namespace {

std::uint64_t mix_node(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
    return x ^ (x >> 29);
}

std::uint64_t key_of(const Node& node) {
    if (node.call != Node::loop) return mix_node(1, node.call);
    std::uint64_t key = mix_node(2, node.iterations);
    for (const Node& inner : node.body)
        key = mix_node(key, key_of(inner));
    return key;
}

bool alike_nodes(const Node& a, const Node& b) {
    return a.call == b.call && a.iterations == b.iterations &&
           std::equal(a.body.begin(), a.body.end(), b.body.begin(), b.body.end(), alike_nodes);
}

void add(Times& sum, const Times& more) {
    sum.compute += more.compute;
    sum.inside += more.inside;
    sum.tests += more.tests;
    sum.bare += more.bare;
}

// Adds the times of a node that is alike.
void merge(Node& into, const Node& from) {
    into.count += from.count;
    add(into.times, from.times);
    for (std::size_t i = 0; i < into.body.size(); ++i)
        merge(into.body[i], from.body[i]);
}

std::size_t nodes_in(const Node& node) {
    std::size_t all = 1;
    for (const Node& inner : node.body)
        all += nodes_in(inner);
    return all;
}

}  // namespace

void Sequence::append(std::uint32_t call, const Times& times) {
    if (open_ && follow(call, times)) return;
    push(call, times);
}

bool Sequence::follow(std::uint32_t call, const Times& times) {
    Node& loop = nodes_.back();
    if (loop.body[iteration_.size()].call != call) {
        leave_loop();
        // What is left of the last iteration may have made a new loop.
        return open_ && follow(call, times);
    }
    iteration_.push_back(times);
    if (iteration_.size() == loop.body.size()) end_loop();
    return true;
}

// An iteration of the open loop is complete.
void Sequence::end_loop() {
    Node& loop = nodes_.back();
    for (std::size_t i = 0; i < iteration_.size(); ++i) {
        ++loop.body[i].count;
        add(loop.body[i].times, iteration_[i]);
        add(timed_[i], iteration_[i]);
    }
    ++timed_rounds_;
    ++loop.iterations;
    iteration_.clear();
}

void Sequence::append_untimed(std::size_t calls) {
    untimed_rounds_ = static_cast<std::uint32_t>(calls / body().size());
    untimed_at_ = calls % body().size();
}

double Sequence::usual_ticks(bool with_next) const {
    std::uint64_t ticks = with_next ? timed_[untimed_at_].compute : 0;
    for (std::size_t i = 0; i < timed_.size(); ++i)
        ticks += (untimed_rounds_ + (i < untimed_at_ ? 1 : 0)) * (timed_[i].compute + timed_[i].inside);
    return static_cast<double>(ticks) / static_cast<double>(timed_rounds_);
}

std::uint64_t Sequence::settle(double compute_factor, double inside_factor) {
    Node& loop = nodes_.back();
    std::uint64_t compute = 0;
    const auto part = [this](double factor, std::uint64_t sum, std::uint32_t rounds) {
        return static_cast<std::uint64_t>(factor * static_cast<double>(sum) * rounds /
                                          static_cast<double>(timed_rounds_));
    };
    const auto its = [&](const Times& timed, std::uint32_t rounds) {
        const Times times{part(compute_factor, timed.compute, rounds),
                          part(inside_factor, timed.inside, rounds), 0, part(1, timed.bare, rounds)};
        compute += times.compute;
        return times;
    };
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
        loop.body[i].count += untimed_rounds_;
        add(loop.body[i].times, its(timed_[i], untimed_rounds_));
        if (i < untimed_at_) iteration_.push_back(its(timed_[i], 1));
    }
    loop.iterations += std::exchange(untimed_rounds_, 0);
    untimed_at_ = 0;
    return compute;
}

void Sequence::leave_loop() {
    open_ = false;
    const std::vector<Times> rest = std::exchange(iteration_, {});
    const std::size_t loop = nodes_.size() - 1;
    std::vector<std::uint32_t> calls;
    for (std::size_t i = 0; i < rest.size(); ++i)
        calls.push_back(nodes_[loop].body[i].call);
    keys_.back() = key_of(nodes_.back());
    fold();
    for (std::size_t i = 0; i < rest.size(); ++i)
        append(calls[i], rest[i]);
}

void Sequence::push(std::uint32_t call, const Times& times) {
    if (used_ >= limit_) {
        ++lost_;
        return;
    }
    Node node;
    node.call = call;
    node.count = 1;
    node.times = times;
    keys_.push_back(key_of(node));
    lengths_.push_back(0);
    nodes_.push_back(std::move(node));
    ++used_;
    fold();
}

bool Sequence::equal_tails(std::size_t left, std::size_t right, std::size_t length) const {
    for (std::size_t i = length; i-- > 0;)
        if (keys_[left + i] != keys_[right + i] || !alike_nodes(nodes_[left + i], nodes_[right + i]))
            return false;
    return true;
}

void Sequence::fold() {
    const std::size_t size = nodes_.size();
    const std::uint64_t last = keys_.back();
    for (std::size_t length = 1; length <= window && length < size; ++length) {
        const std::size_t before = size - 1 - length;
        // One more iteration of the loop in front?
        if (lengths_[before] == length) {
            Node& loop = nodes_[before];
            if (std::equal(loop.body.begin(), loop.body.end(), nodes_.begin() + static_cast<long>(before) + 1,
                           alike_nodes)) {
                for (std::size_t i = 0; i < length; ++i) {
                    used_ -= nodes_in(nodes_[before + 1 + i]);
                    merge(loop.body[i], nodes_[before + 1 + i]);
                }
                ++loop.iterations;
                nodes_.resize(before + 1);
                keys_.resize(before + 1);
                lengths_.resize(before + 1);
                return open_loop();
            }
        }
        // The same again?
        if (keys_[before] == last && 2 * length <= size &&
            equal_tails(size - 2 * length, size - length, length)) {
            Node loop;
            loop.iterations = 2;
            loop.body.assign(std::make_move_iterator(nodes_.end() - 2 * static_cast<long>(length)),
                             std::make_move_iterator(nodes_.end() - static_cast<long>(length)));
            for (std::size_t i = 0; i < length; ++i) {
                used_ -= nodes_in(nodes_[size - length + i]);
                merge(loop.body[i], nodes_[size - length + i]);
            }
            ++used_;
            nodes_.resize(size - 2 * length);
            keys_.resize(size - 2 * length);
            lengths_.resize(size - 2 * length);
            keys_.push_back(key_of(loop));
            lengths_.push_back(static_cast<std::uint32_t>(length));
            nodes_.push_back(std::move(loop));
            return open_loop();
        }
    }
}

// The list ends with a loop: follows it if its body has no loops.
void Sequence::open_loop() {
    const Node& loop = nodes_.back();
    keys_.back() = key_of(loop);
    open_ = std::all_of(loop.body.begin(), loop.body.end(),
                        [](const Node& node) { return node.call != Node::loop; });
    iteration_.clear();
    timed_.assign(loop.body.size(), {});
    timed_rounds_ = 0;
}

void Sequence::close() {
    while (open_) {
        const bool rest = !iteration_.empty();
        leave_loop();
        if (!rest) break;
    }
    open_ = false;
}

}  // namespace offpath::profile
