#include "link_model.h"

#include <map>
#include <tuple>
#include <vector>

namespace offpath::testing {
namespace {

using namespace offpath::schedule;

struct Message {
    std::uint32_t from = 0, to = 0;
    OpId send = 0, recv = 0;
    std::uint64_t chunks_left = 0;
    unsigned ends_ready = 0;  // 2: it can move
};

class LinkModel {
  public:
    LinkModel(std::span<const Schedule> schedules, std::uint64_t chunk_bytes, Service service)
        : schedules_(schedules),
          service_(service),
          missing_(schedules.size()),
          active_(schedules.size()),
          turn_(schedules.size()) {
        for (std::uint32_t rank = 0; rank < schedules.size(); ++rank) {
            const auto ops = schedules[rank].ops();
            for (OpId id = 0; id < ops.size(); ++id) {
                if (ops[id].kind == OpKind::send) {
                    Message& message = messages_[{rank, ops[id].peer, ops[id].tag}];
                    message.from = rank;
                    message.to = ops[id].peer;
                    message.send = id;
                    message.chunks_left = (ops[id].bytes + chunk_bytes - 1) / chunk_bytes;
                } else if (ops[id].kind == OpKind::recv) {
                    messages_[{ops[id].peer, rank, ops[id].tag}].recv = id;
                }
                missing_[rank].push_back(schedules[rank].dependency_count(id));
                if (missing_[rank].back() == 0) starting_.push_back({rank, id});
            }
            left_ += ops.size();
        }
    }

    std::uint64_t run() {
        std::uint64_t slot = 0;
        while (left_ > 0) {
            const std::size_t before = left_;
            const bool started = !starting_.empty();
            start();
            const bool moved = move(slot);
            if (!started && !moved && left_ == before) return 0;
            ++slot;
        }
        return slot;
    }

  private:
    void start() {
        const auto now = std::move(starting_);
        starting_.clear();
        for (auto [rank, id] : now) {
            const Op& op = schedules_[rank].ops()[id];
            if (op.kind != OpKind::send && op.kind != OpKind::recv) {
                finish(rank, id);
                continue;
            }
            const bool is_send = op.kind == OpKind::send;
            Message& message =
                messages_.at(is_send ? std::tuple{rank, op.peer, op.tag} : std::tuple{op.peer, rank, op.tag});
            if (++message.ends_ready == 2) active_[message.from].push_back(&message);
        }
    }

    bool move(std::uint64_t slot) {
        const std::size_t size = schedules_.size();
        std::vector<bool> taken(size, false);
        bool moved = false;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t rank = (i + slot) % size;
            auto& active = active_[rank];
            for (std::size_t j = 0; j < active.size(); ++j) {
                const std::size_t at = ((service_ == Service::in_turn ? turn_[rank] : 0) + j) % active.size();
                Message& message = *active[at];
                if (taken[message.to]) continue;
                taken[message.to] = moved = true;
                turn_[rank] = at + 1;
                if (--message.chunks_left == 0) {
                    active.erase(active.begin() + static_cast<std::ptrdiff_t>(at));
                    turn_[rank] = at;
                    finish(message.from, message.send);
                    finish(message.to, message.recv);
                }
                break;
            }
        }
        return moved;
    }

    void finish(std::uint32_t rank, OpId id) {
        --left_;
        for (OpId next : schedules_[rank].successors(id))
            if (--missing_[rank][next] == 0) starting_.push_back({rank, next});
    }

    std::span<const Schedule> schedules_;
    Service service_;
    std::vector<std::vector<std::uint32_t>> missing_;
    std::vector<std::vector<Message*>> active_;  // by sender
    std::vector<std::size_t> turn_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Message> messages_;
    std::vector<std::pair<std::uint32_t, OpId>> starting_;
    std::size_t left_ = 0;
};

}  // namespace

std::uint64_t slots_until_done(std::span<const Schedule> schedules, std::uint64_t chunk_bytes,
                               Service service) {
    return LinkModel(schedules, chunk_bytes, service).run();
}

}  // namespace offpath::testing
