// The calls of a profile's sequence in order, loops repeated. Borrows the nodes.
#pragma once

#include "sim/profile/profile.h"

namespace offpath::sim {

class Cursor {
  public:
    explicit Cursor(const std::vector<ProfiledNode>& nodes) { frames_.push_back({&nodes, 0, 1}); }
    // Null: there are no more.
    const ProfiledNode* next() {
        while (!frames_.empty()) {
            Frame& frame = frames_.back();
            if (frame.at == frame.nodes->size()) {
                frame.at = 0;
                if (--frame.left == 0) frames_.pop_back();
                continue;
            }
            const ProfiledNode& node = (*frame.nodes)[frame.at++];
            if (!node.loop) return &node;
            if (node.times > 0) frames_.push_back({&node.body, 0, node.times});
        }
        return nullptr;
    }

  private:
    struct Frame {
        const std::vector<ProfiledNode>* nodes;
        std::size_t at;
        std::uint64_t left;
    };
    std::vector<Frame> frames_;
};

}  // namespace offpath::sim
