#include "client/devices.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace offpath::client {
namespace {

constexpr std::size_t names_in_messages = 8;

struct Entry {
    std::string node;
    control::TcpAddress address;
};
using Entries = std::vector<Entry>;

std::string first_label(const std::string& name) {
    return name.substr(0, name.find('.'));
}

Status add(Entries& entries, const std::string& node, const std::string& text, const std::string& where,
           std::string& problem) {
    Entry entry{node, {}};
    std::string why;
    if (node.empty() || node.find_first_of(" \t:@") != std::string::npos)
        why = fmt::format("'{}' is no name of a node", node);
    else if (control::parse_tcp_address(text, entry.address, why) == Status::ok)
        for (const Entry& other : entries)
            if (other.node == node) why = fmt::format("node {} is named twice", node);
    if (!why.empty()) {
        problem = fmt::format("{}: {}", where, why);
        return Status::invalid;
    }
    entries.push_back(std::move(entry));
    return Status::ok;
}

Status read_list(const std::string& setting, Entries& entries, std::string& problem) {
    std::istringstream items(setting);
    std::string item;
    while (std::getline(items, item, ',')) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) {
            problem = fmt::format("OFFPATH_DEVICES: '{}' is no NODE=ADDR[:PORT]", item);
            return Status::invalid;
        }
        if (Status status =
                add(entries, item.substr(0, equals), item.substr(equals + 1), "OFFPATH_DEVICES", problem);
            status != Status::ok)
            return status;
    }
    return Status::ok;
}

Status read_file(const std::string& path, Entries& entries, std::string& problem) {
    std::ifstream file(path);
    if (!file) {
        problem = fmt::format("OFFPATH_DEVICES=@{}: {}", path, std::strerror(errno));
        return Status::unavailable;
    }
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string node, address, more;
        if (!(words >> node)) continue;
        const std::string where = fmt::format("{}, line {}", path, number);
        if (!(words >> address) || words >> more) {
            problem = fmt::format("{}: '{}' is no NODE ADDR[:PORT]", where, line);
            return Status::invalid;
        }
        if (Status status = add(entries, node, address, where, problem); status != Status::ok) return status;
    }
    return Status::ok;
}

const Entry* find(const Entries& entries, const std::string& node) {
    for (const Entry& entry : entries)
        if (entry.node == node) return &entry;
    for (const Entry& entry : entries)
        if (first_label(entry.node) == first_label(node) &&
            (entry.node.find('.') == std::string::npos || node.find('.') == std::string::npos))
            return &entry;
    return nullptr;
}

std::string names(const Entries& entries) {
    std::string text;
    for (std::size_t i = 0; i < entries.size() && i < names_in_messages; ++i)
        text += (i == 0 ? "" : ", ") + entries[i].node;
    if (entries.size() > names_in_messages)
        text += fmt::format(" and {} more", entries.size() - names_in_messages);
    return text.empty() ? "none" : text;
}

}  // namespace

Status find_device(const std::string& setting, const std::string& node, control::TcpAddress& address,
                   std::string& problem) {
    const bool from_file = setting.starts_with('@');
    if (!from_file && setting.find('=') == std::string::npos) {
        const Status status = control::parse_tcp_address(setting, address, problem);
        if (status != Status::ok)
            problem = fmt::format(
                "OFFPATH_DEVICES: {}; or NODE=ADDR[:PORT],NODE=..., or @FILE with lines NODE ADDR[:PORT]",
                problem);
        return status;
    }
    Entries entries;
    const Status status =
        from_file ? read_file(setting.substr(1), entries, problem) : read_list(setting, entries, problem);
    if (status != Status::ok) return status;
    const Entry* const entry = find(entries, node);
    if (entry == nullptr) {
        problem = fmt::format("node {} is not in OFFPATH_DEVICES{}, which lists {}", node,
                              from_file ? "=" + setting : "", names(entries));
        return Status::unavailable;
    }
    address = entry->address;
    return Status::ok;
}

}  // namespace offpath::client
