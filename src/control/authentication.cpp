#include "control/authentication.h"

#include "base/file_descriptor.h"
#include "base/sodium_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace offpath::control {
namespace {

static_assert(sizeof(Mac) == crypto_auth_hmacsha256_BYTES);
static_assert(sizeof(Secret) == crypto_auth_hmacsha256_BYTES);

class Hmac {
  public:
    explicit Hmac(std::span<const std::byte> key) {
        sodium::start();
        crypto_auth_hmacsha256_init(&state_, sodium::in(key), key.size());
    }
    ~Hmac() { sodium_memzero(&state_, sizeof state_); }
    Hmac(const Hmac&) = delete;
    Hmac& operator=(const Hmac&) = delete;
    Hmac& add(std::span<const std::byte> bytes) {
        crypto_auth_hmacsha256_update(&state_, sodium::in(bytes), bytes.size());
        return *this;
    }
    std::array<std::byte, 32> end() {
        std::array<std::byte, 32> result;
        crypto_auth_hmacsha256_final(&state_, sodium::out(result));
        return result;
    }

  private:
    crypto_auth_hmacsha256_state state_;
};

}  // namespace

Key::~Key() {
    wipe(bytes_);
}

Status read_key_file(const std::string& path, Key& key, std::string& problem) {
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat found {};
    if (!file || fstat(file.get(), &found) != 0) {
        problem = fmt::format("key file {}: {}", path, std::strerror(errno));
        return Status::unavailable;
    }
    if (!S_ISREG(found.st_mode)) {
        problem = fmt::format("key file {} is not a regular file", path);
        return Status::invalid;
    }
    if (found.st_uid != geteuid() && found.st_uid != 0) {
        problem = fmt::format("key file {} belongs to user {}; accepted are files of user {} and of root",
                              path, found.st_uid, geteuid());
        return Status::access;
    }
    if ((found.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)) != 0) {
        problem = fmt::format(
            "key file {} may be read or written by others (mode {:o}); take their rights away: chmod 600",
            path, found.st_mode & 07777);
        return Status::access;
    }
    const Status status = read_key_descriptor(file.get(), key, problem);
    if (status != Status::ok) problem = fmt::format("key file {}: {}", path, problem);
    return status;
}

Status read_key_descriptor(int fd, Key& key, std::string& problem) {
    std::vector<std::byte> bytes(max_key_bytes + 1);
    std::size_t used = 0;
    Status status = Status::ok;
    while (used < bytes.size()) {
        const ssize_t got = read(fd, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            problem = fmt::format("reading the key from descriptor {}: {}", fd, std::strerror(errno));
            status = Status::unavailable;
        }
        if (got <= 0) break;
        used += static_cast<std::size_t>(got);
    }
    if (status == Status::ok && (used < min_key_bytes || used > max_key_bytes)) {
        problem =
            fmt::format("the key has {}{} bytes; {} to {} are accepted", used > max_key_bytes ? "over " : "",
                        used > max_key_bytes ? max_key_bytes : used, min_key_bytes, max_key_bytes);
        status = Status::invalid;
    }
    if (status == Status::ok)
        key = Key(std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used)));
    wipe(bytes);
    return status;
}

Secret job_secret(const Key& key, std::uint64_t job_high, std::uint64_t job_low, std::uint64_t issued) {
    constexpr std::string_view label = "offpath job";
    const std::uint64_t job[] = {job_high, job_low, issued};
    return Hmac(key.bytes()).add(std::as_bytes(std::span(label))).add(std::as_bytes(std::span(job))).end();
}

Secret fabric_secret(const Secret& job) {
    constexpr std::string_view label = "offpath fabric";
    return Hmac(job).add(std::as_bytes(std::span(label))).end();
}

Secret draw_secret() {
    sodium::start();
    Secret secret;
    randombytes_buf(secret.data(), secret.size());
    return secret;
}

Nonce draw_nonce() {
    sodium::start();
    Nonce nonce;
    randombytes_buf(nonce.data(), nonce.size());
    return nonce;
}

std::uint64_t draw_token() {
    sodium::start();
    std::uint64_t token = 0;
    while (token == 0)
        randombytes_buf(&token, sizeof token);
    return token;
}

Mac handshake_mac(const Secret& secret, const Nonce& daemon, const Nonce& client, const Message& message) {
    const std::vector<std::byte> bytes = encode_message(message);
    return Hmac(secret).add(daemon).add(client).add(std::span(bytes).first(bytes.size() - sizeof(Mac))).end();
}

bool same(const Mac& a, const Mac& b) {
    return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> bytes) {
    if (!bytes.empty()) sodium_memzero(bytes.data(), bytes.size());
}

}  // namespace offpath::control
