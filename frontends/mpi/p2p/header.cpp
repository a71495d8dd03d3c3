// The layout of a header: a number that is used once, the fields, and a check of both by SipHash-2-4
// (Aumasson and Bernstein, 2012). A stream of bits made from the number masks the fields.
#include "header.h"

#include <sys/random.h>

#include <bit>
#include <chrono>
#include <cstring>

namespace offpath::mpi::p2p {
namespace {

constexpr std::size_t number_bytes = 8, check_bytes = 8;
constexpr std::size_t checked_bytes = header_bytes - check_bytes;
static_assert(number_bytes + sizeof(Header) <= checked_bytes);

HeaderSecret secret;
std::uint64_t rank_bits = 0, serial = 0;

// A bijection (the finalizer of SplitMix64; Steele, Lea and Flood, 2014).
std::uint64_t mix(std::uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBU;
    return bits ^ bits >> 31;
}

class SipHash {
  public:
    explicit SipHash(const HeaderSecret& key)
        : v_{key.first ^ 0x736F6D6570736575U, key.second ^ 0x646F72616E646F6DU,
             key.first ^ 0x6C7967656E657261U, key.second ^ 0x7465646279746573U} {}

    void add(std::uint64_t word) {
        v_[3] ^= word;
        rounds(2);
        v_[0] ^= word;
    }
    std::uint64_t end() {
        v_[2] ^= 0xFF;
        rounds(4);
        return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    }

  private:
    void rounds(int count) {
        for (; count > 0; --count) {
            v_[0] += v_[1];
            v_[2] += v_[3];
            v_[1] = std::rotl(v_[1], 13) ^ v_[0];
            v_[3] = std::rotl(v_[3], 16) ^ v_[2];
            v_[0] = std::rotl(v_[0], 32);
            v_[2] += v_[1];
            v_[0] += v_[3];
            v_[1] = std::rotl(v_[1], 17) ^ v_[2];
            v_[3] = std::rotl(v_[3], 21) ^ v_[0];
            v_[2] = std::rotl(v_[2], 32);
        }
    }

    std::array<std::uint64_t, 4> v_;
};

std::uint64_t check_of(const char* bytes) {
    SipHash hash(secret);
    std::size_t at = 0;
    for (; at + 8 <= checked_bytes; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes + at, sizeof word);
        hash.add(word);
    }
    std::uint64_t last = std::uint64_t{checked_bytes} << 56;
    std::memcpy(&last, bytes + at, checked_bytes - at);
    hash.add(last);
    return hash.end();
}

// Applies the stream to all fields, and to the bytes after them up to the check.
void cover(char* bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes, number_bytes);
    for (std::size_t at = number_bytes; at < checked_bytes; ++at) {
        const std::uint64_t stream = mix(secret.first ^ (number + at / 8 * 0x9E3779B97F4A7C15U));
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (stream >> at % 8 * 8 & 0xFF));
    }
}

}  // namespace

HeaderSecret draw_header_secret() {
    HeaderSecret drawn;
    if (getrandom(&drawn, sizeof drawn, 0) == static_cast<ssize_t>(sizeof drawn)) return drawn;
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return {mix(now), mix(mix(now) + 1)};
}

void open_headers(const HeaderSecret& of_job, int rank) {
    secret = of_job;
    rank_bits = std::uint64_t{static_cast<std::uint32_t>(rank)} << 40;
}

HeaderBytes encode(const Header& header) {
    HeaderBytes bytes{};
    const std::uint64_t number = mix(secret.second ^ rank_bits ^ serial++);
    std::memcpy(bytes.data(), &number, number_bytes);
    std::memcpy(bytes.data() + number_bytes, &header, sizeof header);
    cover(bytes.data());
    const std::uint64_t check = check_of(bytes.data());
    std::memcpy(bytes.data() + checked_bytes, &check, check_bytes);
    return bytes;
}

Header decode(const void* received) {
    HeaderBytes bytes;
    std::memcpy(bytes.data(), received, bytes.size());
    cover(bytes.data());
    Header header;
    std::memcpy(&header, bytes.data() + number_bytes, sizeof header);
    return header;
}

bool is_header(const HeaderBytes& bytes) {
    std::uint64_t check = 0;
    std::memcpy(&check, bytes.data() + checked_bytes, check_bytes);
    return check == check_of(bytes.data());
}

std::optional<Header> decode_if_whole(const void* received) {
    HeaderBytes bytes;
    std::memcpy(bytes.data(), received, bytes.size());
    if (!is_header(bytes)) return std::nullopt;
    return decode(received);
}

}  // namespace offpath::mpi::p2p
