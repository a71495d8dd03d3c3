#include "nuisance.h"

#include "control/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace strangers {

using namespace offpath;

namespace {

constexpr int answer_ms = 8000;
constexpr std::uint64_t malformed_job = 0xbad00;

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

void Malformed::say_locally(std::span<const std::byte> bytes) {
    const FileDescriptor socket = connect_locally(target_);
    write_all(socket.get(), bytes);
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)control::receive_message(socket.get(), answer_ms, message, descriptors, problem);
}

void Malformed::say_over_tcp(std::span<const std::byte> bytes) {
    control::MessageSocket socket = control::MessageSocket::over_tcp(connect_over_tcp(target_));
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)socket.receive(answer_ms, message, descriptors, problem);  // the challenge
    write_all(socket.fd(), bytes);
    (void)socket.receive(answer_ms, message, descriptors, problem);
}

// With the key it gets as far as the address of its link, which is none.
void Malformed::introduce_itself(bool with_the_key) {
    control::MessageSocket socket = control::MessageSocket::over_tcp(connect_over_tcp(target_));
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    if (socket.receive(answer_ms, message, descriptors, problem) != Status::ok) return;
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
    (void)socket.receive(answer_ms, message, descriptors, problem);
}

// It is accepted, and then sends what no client sends.
void Malformed::misuse_a_session() {
    Session session(target_, malformed_job + sent_);
    control::BasicSend command;
    command.team = 99;
    (void)session.post(command);
    session.ring();
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    std::string problem;
    (void)control::receive_message(session.socket(), answer_ms, message, descriptors, problem);
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
            return say_locally(noise);
        case 1:
            ++by_kind_["noise over TCP"];
            return say_over_tcp(noise);
        case 2:
            ++by_kind_["too long"];
            return say_locally(too_long);
        case 3:
            ++by_kind_["another protocol"];
            return say_over_tcp(std::as_bytes(std::span(http)));
        case 4:
            ++by_kind_["another version"];
            return say_locally(other_version);
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
