// How the two sides of a link introduce themselves: the address of the transport, and where the side offers
// memory that the other may write into (rings.h) the key to it. Without one, it is the address alone. Pure.
//   magic "OFIN", length of the address u32, little endian, address, key.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace offpath::link {

struct AddressAndKey {
    std::span<const std::byte> address, key;  // no key: messages only
};
std::vector<std::byte> join_address_and_key(const AddressAndKey& both);
// Views into `bytes`. What is not one of ours counts as an address, which the transport refuses.
AddressAndKey split_address_and_key(std::span<const std::byte> bytes);

}  // namespace offpath::link
