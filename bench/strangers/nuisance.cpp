#include "nuisance.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace strangers {

using namespace offpath;
using control::MessageSocket;

namespace {

constexpr int answer_ms = 8000;
constexpr std::uint64_t malformed_job = 0xbad00;

// The daemon's next message. A Goodbye stands for the end of the connection.
control::Message answer(MessageSocket& socket) {
    control::Message message = control::Goodbye{};
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)socket.receive(answer_ms, message, descriptors, problem);
    return message;
}

void write_all(int socket, std::span<const std::byte> bytes) {
    (void)send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace

void IdleConnections::tend() {
    std::erase_if(connections_, [&](const Idle& each) {
        std::byte byte;
        // The challenge of a TCP connection is read and ignored.
        ssize_t got = 0;
        while ((got = recv(each.socket.get(), &byte, 1, MSG_DONTWAIT)) > 0) {
        }
        const bool gone = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        if (gone && each.tcp) --over_tcp_;
        return gone;
    });
    while (connections_.size() < wanted_) {
        const bool tcp = over_tcp_ < wanted_ / 4;
        connections_.push_back({tcp ? connect_over_tcp(target_) : connect_locally(target_), tcp});
        over_tcp_ += tcp ? 1 : 0;
        ++opened_;
    }
}

Malformed::Malformed(const Target& target) : target_(target) {
    std::string problem;
    if (control::read_key_file(target.key_file, key_, problem) != Status::ok)
        throw std::runtime_error(problem);
}

void Malformed::say(MessageSocket socket, std::span<const std::byte> bytes) {
    if (socket.remote()) (void)answer(socket);  // the challenge
    write_all(socket.fd(), bytes);
    (void)answer(socket);
}

// With the key it gets as far as the address of its link, which is none.
void Malformed::introduce_itself(bool with_the_key) {
    MessageSocket socket = MessageSocket::over_tcp(connect_over_tcp(target_));
    const control::Message message = answer(socket);
    const auto* challenge = std::get_if<control::Challenge>(&message);
    if (challenge == nullptr) return;
    control::RemoteHello hello;
    hello.hello.job_high = malformed_job + sent_;
    hello.issued = static_cast<std::uint64_t>(std::time(nullptr));
    hello.nonce = control::draw_nonce();
    hello.link.resize(100);
    const control::Secret secret = with_the_key
                                       ? control::job_secret(key_, hello.hello.job_high, 0, hello.issued)
                                       : control::draw_secret();
    hello.mac = control::handshake_mac(secret, challenge->nonce, hello.nonce, hello);
    (void)socket.send(hello);
    (void)answer(socket);
}

// It is accepted, and then sends what no client sends.
void Malformed::misuse_a_session() {
    Session session(target_, malformed_job + sent_);
    control::BasicSend command;
    command.team = 99;
    (void)session.post(command);
    session.ring();
    (void)answer(session.socket());
}

void Malformed::send_next() {
    const std::vector<std::byte> noise(200, std::byte{0xa5}),
        too_long(control::max_message_bytes + 100, std::byte{1});
    std::vector<std::byte> other_version = control::encode_message(control::Hello{});
    other_version[4] = std::byte{99};
    constexpr std::string_view http = "GET / HTTP/1.0\r\n\r\n";
    switch (sent_++ % 8) {
        case 0:
            ++by_kind_["noise"];
            return say(MessageSocket::over_unix(connect_locally(target_)), noise);
        case 1:
            ++by_kind_["noise over TCP"];
            return say(MessageSocket::over_tcp(connect_over_tcp(target_)), noise);
        case 2:
            ++by_kind_["too long"];
            return say(MessageSocket::over_unix(connect_locally(target_)), too_long);
        case 3:
            ++by_kind_["another protocol"];
            return say(MessageSocket::over_tcp(connect_over_tcp(target_)), std::as_bytes(std::span(http)));
        case 4:
            ++by_kind_["another version"];
            return say(MessageSocket::over_unix(connect_locally(target_)), other_version);
        case 5:
            ++by_kind_["without the key"];
            return introduce_itself(false);
        case 6:
            ++by_kind_["with the key, without a link"];
            return introduce_itself(true);
        default:
            ++by_kind_["malformed commands"];
            return misuse_a_session();
    }
}

}  // namespace strangers
