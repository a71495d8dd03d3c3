#include "target/program/places.h"

#include "base/environment.h"
#include "client/attach.h"
#include "control/tcp_socket.h"

#include <fmt/format.h>

#include <sstream>

namespace offpath::target {
namespace {

constexpr std::size_t max_places = 64;

std::string first_label(const std::string& name) {
    return name.substr(0, name.find('.'));
}

}  // namespace

Status parse_places(const std::string& setting, const std::string& node, std::vector<Place>& places,
                    std::string& problem) {
    std::istringstream items(setting);
    std::string item;
    while (std::getline(items, item, ',')) {
        const std::string entry = item;
        if (const std::size_t equals = item.find('='); equals != std::string::npos) {
            if (first_label(item.substr(0, equals)) != first_label(node)) continue;
            item.erase(0, equals + 1);
        }
        Place place;
        control::TcpAddress address;
        std::string why;
        if (item.find('/') != std::string::npos)
            place.directory = item;
        else if (item.empty() || control::parse_tcp_address(item, address, why) != Status::ok)
            problem = fmt::format(
                "OFFPATH_TARGET_DEVICES: '{}' is neither a directory, with a slash, nor ADDR[:PORT]", entry);
        else
            place.address = item;
        if (places.size() == max_places)
            problem = fmt::format("OFFPATH_TARGET_DEVICES lists more than {} devices", max_places);
        if (!problem.empty()) return Status::invalid;
        places.push_back(std::move(place));
    }
    if (!places.empty()) return Status::ok;
    problem = fmt::format("OFFPATH_TARGET_DEVICES={} lists no device for node {}", setting, node);
    return Status::unavailable;
}

Status find_places(std::vector<Place>& places, std::string& problem) {
    const std::string setting = environment::text("OFFPATH_TARGET_DEVICES", "");
    if (!setting.empty()) return parse_places(setting, control::host_name(), places, problem);
    places.emplace_back();
    return Status::ok;
}

}  // namespace offpath::target
