#include "link/introduction.h"

#include "link/envelope.h"

namespace offpath::link {
namespace {

constexpr Letters letters = {'O', 'F', 'I', 'N'};

}  // namespace

std::vector<std::byte> join_introduction(const Introduction& introduction) {
    const auto& [address, key] = introduction;
    if (key.empty()) return {address.begin(), address.end()};
    return seal(letters, {address, key});
}

Introduction split_introduction(std::span<const std::byte> bytes) {
    const auto envelope = open_envelope(letters, bytes);
    return envelope ? Introduction{envelope->first, envelope->second} : Introduction{bytes, {}};
}

}  // namespace offpath::link
