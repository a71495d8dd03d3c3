// Topology: which links a message crosses from one node to another, beside the nodes' own ports. Pure.
//
// single      one switch without a limit of its own: no link between the ports
// fat_tree    two levels; each leaf has `nodes_per_leaf` nodes and `spines` links up
// dragonfly   groups of routers, fully connected inside a group, one link between two groups; minimal routes
// torus       dimensions of any number; the shorter way in each dimension, one dimension after the other
//
// Routes depend on the two nodes only, as with static routing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::sim {

using LinkId = std::uint32_t;

struct TopologyShape {
    enum class Kind : std::uint8_t { single, fat_tree, dragonfly, torus } kind = Kind::single;
    std::uint32_t nodes_per_leaf = 0, spines = 0;                           // fat_tree
    std::uint32_t groups = 0, routers_per_group = 0, nodes_per_router = 0;  // dragonfly
    std::vector<std::uint32_t> dimensions;                                  // torus
};

// "single", "fat-tree:16x8" (nodes per leaf, spines), "dragonfly:9x4x2" (groups, routers, nodes per router),
// "torus:4x4x2". Throws std::invalid_argument, which says what is accepted, if the text is none of them, or
// if it has no place for that many nodes.
TopologyShape parse_topology(const std::string& text, std::uint32_t nodes);

class Topology {
  public:
    Topology(TopologyShape shape, std::uint32_t nodes);
    std::uint32_t links() const { return links_; }
    // Appends the links between the ports of two different nodes, in order.
    void route(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const;

  private:
    void route_dragonfly(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const;
    void route_torus(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const;
    LinkId inside_group(std::uint32_t group, std::uint32_t from, std::uint32_t to) const;

    TopologyShape shape_;
    std::uint32_t links_ = 0;
};

}  // namespace offpath::sim
