// The encrypting transport: wraps another one, encrypts what it sends, and accepts only what its peer has
// encrypted. It is for networks on which strangers can read or change packets.
//
// Each transport has a key pair of its own. Its address names the public key, so two transports that connect
// share a key that nobody else can compute, without a handshake. The address also names a secret, without
// which nobody can make a message that is accepted. Whoever hands the addresses out is trusted: the bootstrap
// of the job's ranks, or the handshake of a remote attach. Keys end with their transports.
//
// A message that was changed, or that its peer has not sent, is dropped and logged, and so is one that comes
// twice. It changes nothing else. If the next message shows that one is missing, this side asks the peer how
// much it has sent. If something is missing and does not come within the time of OFFPATH_LOST_AFTER_S, the
// peer is lost. So a change on the network never gives wrong data, and does not make anybody wait for ever
// who asks for a sign of life. A fetched payload that was changed makes the peer lost at once; what fetch()
// has written then has no meaning.
//
// What is sent is copied once, as it is encrypted. What is fetched is decrypted in place. Memory must be
// mapped (checks_memory is false). Sizes and times of messages remain visible.
//
// Threads: as the transport below.
#pragma once

#include "transport/transport.h"

#include <memory>

namespace offpath::transport {

// Throws std::runtime_error if libsodium cannot start.
std::unique_ptr<Transport> make_encrypted_transport(std::unique_ptr<Transport> below);

// Whether an address is that of an encrypting transport.
bool is_encrypted_address(std::span<const std::byte> address);
// Why two transports of which only one encrypts do not connect.
inline constexpr const char* one_side_encrypts =
    "one side encrypts and the other one does not; either all devices and hosts of a job encrypt (offpathd "
    "--encrypt, OFFPATH_ENCRYPT=1) or none";

}  // namespace offpath::transport
