#include "link/address_and_key.h"

#include "link/tagged_pair.h"

namespace offpath::link {
namespace {

constexpr Letters letters = {'O', 'F', 'I', 'N'};

}  // namespace

std::vector<std::byte> join_address_and_key(const AddressAndKey& both) {
    const auto& [address, key] = both;
    if (key.empty()) return {address.begin(), address.end()};
    return join_pair(letters, {address, key});
}

AddressAndKey split_address_and_key(std::span<const std::byte> bytes) {
    const auto pair = split_pair(letters, bytes);
    return pair ? AddressAndKey{pair->first, pair->second} : AddressAndKey{bytes, {}};
}

}  // namespace offpath::link
