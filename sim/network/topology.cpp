#include "sim/network/topology.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace offpath::sim {
namespace {

constexpr const char* accepted =
    "accepted are single, fat-tree:NODES_PER_LEAFxSPINES, dragonfly:GROUPSxROUTERSxNODES_PER_ROUTER and "
    "torus:AxBxC";

std::vector<std::uint32_t> numbers(const std::string& text, const std::string& whole) {
    std::vector<std::uint32_t> found;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('x', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos ||
            std::stoul(part) == 0)
            throw std::invalid_argument(fmt::format(
                "topology \"{}\": \"{}\" is no number from 1 to 999999; {}", whole, part, accepted));
        found.push_back(static_cast<std::uint32_t>(std::stoul(part)));
        begin = end + 1;
    }
    return found;
}

std::uint64_t product(const std::vector<std::uint32_t>& factors) {
    std::uint64_t result = 1;
    for (const std::uint32_t factor : factors)
        result = result > std::numeric_limits<std::uint32_t>::max() ? result : result * factor;
    return result;
}

}  // namespace

TopologyShape parse_topology(const std::string& text, std::uint32_t nodes) {
    TopologyShape shape;
    if (text == "single") return shape;
    const std::size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    if (colon == std::string::npos || (name != "fat-tree" && name != "dragonfly" && name != "torus"))
        throw std::invalid_argument(fmt::format("topology \"{}\" is not known; {}", text, accepted));
    const std::vector<std::uint32_t> sizes = numbers(text.substr(colon + 1), text);
    std::uint64_t places = std::numeric_limits<std::uint64_t>::max();
    if (name == "fat-tree" && sizes.size() == 2) {
        shape.kind = TopologyShape::Kind::fat_tree;
        shape.nodes_per_leaf = sizes[0];
        shape.spines = sizes[1];
    } else if (name == "dragonfly" && sizes.size() == 3) {
        shape.kind = TopologyShape::Kind::dragonfly;
        shape.groups = sizes[0];
        shape.routers_per_group = sizes[1];
        shape.nodes_per_router = sizes[2];
        places = product(sizes);
    } else if (name == "torus") {
        shape.kind = TopologyShape::Kind::torus;
        shape.dimensions = sizes;
        places = product(sizes);
    } else {
        throw std::invalid_argument(
            fmt::format("topology \"{}\" has {} numbers; {}", text, sizes.size(), accepted));
    }
    if (places < nodes)
        throw std::invalid_argument(
            fmt::format("topology \"{}\" has {} places for {} nodes", text, places, nodes));
    return shape;
}

Topology::Topology(TopologyShape shape, std::uint32_t nodes) : shape_(std::move(shape)) {
    switch (shape_.kind) {
        case TopologyShape::Kind::single:
            break;
        case TopologyShape::Kind::fat_tree: {
            const std::uint32_t leaves = (nodes + shape_.nodes_per_leaf - 1) / shape_.nodes_per_leaf;
            links_ = leaves * shape_.spines * 2;  // up, then down
            break;
        }
        case TopologyShape::Kind::dragonfly:
            links_ = shape_.groups * shape_.routers_per_group * shape_.routers_per_group +
                     shape_.groups * shape_.groups;
            break;
        case TopologyShape::Kind::torus:
            links_ = static_cast<std::uint32_t>(product(shape_.dimensions)) *
                     static_cast<std::uint32_t>(shape_.dimensions.size()) * 2;
            break;
    }
}

void Topology::route(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const {
    switch (shape_.kind) {
        case TopologyShape::Kind::single:
            return;
        case TopologyShape::Kind::fat_tree: {
            const std::uint32_t up = from / shape_.nodes_per_leaf, down = to / shape_.nodes_per_leaf;
            if (up == down) return;
            const std::uint32_t spine =
                to % shape_.spines;  // the destination's, as InfiniBand's tables have it
            links.push_back((up * shape_.spines + spine) * 2);
            links.push_back((down * shape_.spines + spine) * 2 + 1);
            return;
        }
        case TopologyShape::Kind::dragonfly:
            return route_dragonfly(from, to, links);
        case TopologyShape::Kind::torus:
            return route_torus(from, to, links);
    }
}

LinkId Topology::inside_group(std::uint32_t group, std::uint32_t from, std::uint32_t to) const {
    return (group * shape_.routers_per_group + from) * shape_.routers_per_group + to;
}

void Topology::route_dragonfly(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const {
    const std::uint32_t routers = shape_.routers_per_group;
    const std::uint32_t from_router = from / shape_.nodes_per_router,
                        to_router = to / shape_.nodes_per_router;
    const std::uint32_t from_group = from_router / routers, to_group = to_router / routers;
    std::uint32_t at = from_router % routers;
    if (from_group != to_group) {
        // The link between two groups ends at a router that the other group's number gives.
        const std::uint32_t leaves_at = to_group % routers, arrives_at = from_group % routers;
        if (at != leaves_at) links.push_back(inside_group(from_group, at, leaves_at));
        links.push_back(shape_.groups * routers * routers + from_group * shape_.groups + to_group);
        at = arrives_at;
    }
    if (at != to_router % routers) links.push_back(inside_group(to_group, at, to_router % routers));
}

void Topology::route_torus(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& links) const {
    const auto dimensions = static_cast<std::uint32_t>(shape_.dimensions.size());
    std::uint32_t stride = 1, at = from;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
        const std::uint32_t size = shape_.dimensions[d];
        std::uint32_t here = at / stride % size;
        const std::uint32_t there = to / stride % size;
        const bool forward = (there + size - here) % size <= size / 2;
        while (here != there) {
            links.push_back((at * dimensions + d) * 2 + (forward ? 0 : 1));
            const std::uint32_t next = forward ? (here + 1) % size : (here + size - 1) % size;
            at = at - here * stride + next * stride;
            here = next;
        }
        stride *= size;
    }
}

}  // namespace offpath::sim
