#include "gate.h"

#include <algorithm>

namespace offpath::campaign {

void Gate::lose(std::span<const std::byte> address) {
    for (const Connection& each : connections_)
        if (std::ranges::equal(each.address, address)) inner_->lose(*each.endpoint);
}

Status Gate::connect(std::span<const std::byte> address, transport::Endpoint** endpoint) {
    const Status status = inner_->connect(address, endpoint);
    if (status == Status::ok) connections_.push_back({{address.begin(), address.end()}, *endpoint});
    return status;
}

void Gate::disconnect(transport::Endpoint* endpoint) {
    std::erase_if(connections_, [&](const Connection& each) { return each.endpoint == endpoint; });
    inner_->disconnect(endpoint);
}

Status Gate::post(transport::Endpoint& endpoint, std::span<const std::byte> header,
                  std::span<const std::byte> payload) {
    if (flaw_.kind == Flaw::Kind::none || shown_ || ++posts_ < flaw_.at)
        return inner_->post(endpoint, header, payload);
    if (flaw_.kind == Flaw::Kind::lost) {
        shown_ = true;
        return Status::ok;
    }
    if (flaw_.kind == Flaw::Kind::twice) {
        shown_ = true;
        (void)inner_->post(endpoint, header, payload);
        return inner_->post(endpoint, header, payload);
    }
    if (payload.empty()) return inner_->post(endpoint, header, payload);
    shown_ = true;
    std::vector<std::byte> other(payload.begin(), payload.end());
    other[other.size() / 2] ^= std::byte{1};
    return inner_->post(endpoint, header, other);
}

}  // namespace offpath::campaign
