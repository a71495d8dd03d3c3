#include "matching/matcher.h"

#include <algorithm>

namespace offpath::matching {

std::optional<Matcher::Cookie> Matcher::post(Envelope wanted, Cookie receive) {
    const bool wild = is_wild(wanted);
    if (wild) {
        for (auto it = arrivals_.begin(); it != arrivals_.end(); ++it) {
            if (!matches(wanted, it->envelope)) continue;
            const Cookie taken = it->cookie;
            // The oldest message of an envelope is first in its list, and no older one has matched.
            auto bucket = by_envelope_.find(key(it->envelope));
            bucket->second.pop_front();
            if (bucket->second.empty()) by_envelope_.erase(bucket);
            arrivals_.erase(it);
            return taken;
        }
    } else if (auto bucket = by_envelope_.find(key(wanted)); bucket != by_envelope_.end()) {
        const Queue::iterator oldest = bucket->second.front();
        const Cookie taken = oldest->cookie;
        bucket->second.pop_front();
        if (bucket->second.empty()) by_envelope_.erase(bucket);
        arrivals_.erase(oldest);
        return taken;
    }
    (wild ? wild_ : exact_[key(wanted)]).push_back({wanted, receive, next_number_++});
    ++receive_count_;
    return std::nullopt;
}

std::optional<Matcher::Cookie> Matcher::peek(Envelope wanted) const {
    if (!is_wild(wanted)) {
        const auto bucket = by_envelope_.find(key(wanted));
        return bucket != by_envelope_.end() ? std::optional(bucket->second.front()->cookie) : std::nullopt;
    }
    const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                    [&](const Waiting& w) { return matches(wanted, w.envelope); });
    return found != arrivals_.end() ? std::optional(found->cookie) : std::nullopt;
}

std::optional<Matcher::Cookie> Matcher::arrive(Envelope message, Cookie cookie) {
    auto bucket = exact_.find(key(message));
    auto wild = std::find_if(wild_.begin(), wild_.end(),
                             [&](const Waiting& w) { return matches(w.envelope, message); });
    const bool have_exact = bucket != exact_.end();
    const bool have_wild = wild != wild_.end();
    if (have_exact && (!have_wild || bucket->second.front().number < wild->number)) {
        const Cookie receive = bucket->second.front().cookie;
        bucket->second.pop_front();
        if (bucket->second.empty()) exact_.erase(bucket);
        --receive_count_;
        return receive;
    }
    if (have_wild) {
        const Cookie receive = wild->cookie;
        wild_.erase(wild);
        --receive_count_;
        return receive;
    }
    arrivals_.push_back({message, cookie, next_number_++});
    by_envelope_[key(message)].push_back(std::prev(arrivals_.end()));
    return std::nullopt;
}

bool Matcher::cancel_receive(Cookie receive) {
    auto is_it = [&](const Waiting& w) { return w.cookie == receive; };
    if (auto it = std::find_if(wild_.begin(), wild_.end(), is_it); it != wild_.end()) {
        wild_.erase(it);
        --receive_count_;
        return true;
    }
    for (auto bucket = exact_.begin(); bucket != exact_.end(); ++bucket) {
        auto it = std::find_if(bucket->second.begin(), bucket->second.end(), is_it);
        if (it == bucket->second.end()) continue;
        bucket->second.erase(it);
        if (bucket->second.empty()) exact_.erase(bucket);
        --receive_count_;
        return true;
    }
    return false;
}

void Matcher::clear(const std::function<void(Cookie)>& receive, const std::function<void(Cookie)>& message) {
    Queue receives = std::move(wild_);
    for (auto& [unused, queue] : exact_)
        receives.splice(receives.end(), queue);
    Queue messages = std::move(arrivals_);
    exact_.clear();
    wild_.clear();
    arrivals_.clear();
    by_envelope_.clear();
    receive_count_ = 0;
    for (const Waiting& waiting : receives)
        receive(waiting.cookie);
    for (const Waiting& waiting : messages)
        message(waiting.cookie);
}

}  // namespace offpath::matching
