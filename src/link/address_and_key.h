// How the two sides of a link introduce themselves: the transport's address and, where a side offers memory
// for the other to write into (rings.h), the key to that memory. Without a key it is the address alone. Pure.
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
// Returns views into `bytes`. Bytes without this form count as an address, which the transport refuses.
AddressAndKey split_address_and_key(std::span<const std::byte> bytes);

}  // namespace offpath::link
