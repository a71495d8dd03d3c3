#include "target/program/connect.h"

#include "base/random_numbers.h"
#include "client/attach.h"
#include "client/devices.h"
#include "control/authentication.h"
#include "control/message_socket.h"
#include "control/tcp_socket.h"
#include "memory/cma.h"
#include "target/shared_line.h"
#include "target/tcp_line.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace offpath::target {
namespace {

using client::AttachOptions;

constexpr auto autostart_patience = std::chrono::seconds(8);

// The target host reads this word to see whether it can read the program's memory.
volatile const std::uint64_t probe_word = 0x6f66667061746821;

control::Hello make_hello(const AttachOptions& options, Purpose purpose) {
    control::Hello hello = options.hello();
    hello.purpose = purpose == Purpose::probe ? control::Purpose::target_facts : control::Purpose::target;
    // Each connection is a job of one rank.
    RandomNumbers random;
    hello.job_high = random.next();
    hello.job_low = random.next();
    hello.job_rank = 0;
    hello.job_size = 1;
    return hello;
}

DeviceFacts facts_of(const control::TargetWelcome& welcome, bool remote) {
    const control::ImageFacts& kept = welcome.images;
    return {welcome.node,    welcome.architecture,
            welcome.cpus,    remote,
            welcome.seconds, {kept.images, kept.bytes, kept.limit_bytes, kept.found, kept.dropped}};
}

// Receives the answer to a hello. A refusal is an error.
Status take_welcome(control::MessageSocket& socket, control::TargetWelcome& welcome,
                    std::vector<FileDescriptor>& descriptors, control::Message& message,
                    std::string& problem) {
    const Status status = socket.receive(control::answer_timeout_ms, message, descriptors, problem);
    if (status != Status::ok) {
        if (problem.empty()) problem = status == Status::peer_lost ? "it hung up" : to_string(status);
        return status == Status::peer_lost ? Status::unavailable : status;
    }
    if (const auto* refusal = std::get_if<control::Refusal>(&message)) {
        problem = "it refused: " + refusal->text;
        return is_error(refusal->status) ? refusal->status : Status::unavailable;
    }
    const auto* found = std::get_if<control::TargetWelcome>(&message);
    if (found == nullptr) {
        problem = "it answered with something else than a welcome";
        return Status::protocol;
    }
    welcome = *found;
    return Status::ok;
}

Status reach_daemon(const AttachOptions& options, FileDescriptor& socket, std::string& problem) {
    const std::string path = control::socket_path(options.directory);
    Status status = control::connect_to(path, socket, problem);
    if (status != Status::unavailable || !options.autostart) return status;
    if (Status started = client::start_daemon(options.directory, problem); started != Status::ok)
        return started;
    const auto give_up = std::chrono::steady_clock::now() + autostart_patience;
    while (status == Status::unavailable && std::chrono::steady_clock::now() < give_up) {
        status = control::connect_to(path, socket, problem);
        if (status == Status::unavailable) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return status;
}

Status open_shared(std::vector<FileDescriptor>& descriptors, FileDescriptor socket, Connection& connection,
                   std::string& problem) {
    const char* why = "it sent no memory";
    if (descriptors.size() != 1 ||
        memory::check_memory_file(descriptors[0].get(), SharedLine::file_bytes(), why) != Status::ok) {
        problem = why;
        return Status::protocol;
    }
    std::unique_ptr<SharedLine> line;
    const memory::File file(descriptors[0].release());
    if (Status status = SharedLine::open(SharedLine::Side::program, file, std::move(socket), line);
        status != Status::ok) {
        problem = "its memory cannot be mapped";
        return status;
    }
    connection.line = std::move(line);
    return Status::ok;
}

Status connect_local(const AttachOptions& options, Purpose purpose, Connection& connection,
                     std::string& problem) {
    FileDescriptor made;
    control::Credentials daemon;
    if (Status status = reach_daemon(options, made, problem); status != Status::ok) return status;
    if (Status status = control::peer_credentials(made.get(), daemon); status != Status::ok) return status;
    if (daemon.uid != geteuid() && daemon.uid != 0) {
        problem = fmt::format("it is user {}'s, not ours", daemon.uid);
        return Status::access;
    }
    control::Hello hello = make_hello(options, purpose);
    hello.probe_address = reinterpret_cast<std::uint64_t>(&probe_word);
    hello.probe_value = probe_word;
    auto socket = control::MessageSocket::over_unix(std::move(made));
    if (Status status = socket.send(hello); status != Status::ok && status != Status::peer_lost)
        return status;
    control::TargetWelcome welcome;
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    if (Status status = take_welcome(socket, welcome, descriptors, message, problem); status != Status::ok)
        return status;
    connection.facts = facts_of(welcome, false);
    connection.reads_program = welcome.reads_program;
    connection.image_nonce = welcome.image_nonce;
    return purpose == Purpose::probe
               ? Status::ok
               : open_shared(descriptors, socket.take_descriptor(), connection, problem);
}

Status connect_remote(const AttachOptions& options, Purpose purpose, const control::TcpAddress& address,
                      Connection& connection, std::string& problem) {
    if (options.encrypt) {
        problem =
            "target regions send their data in clear to devices on other systems, and OFFPATH_ENCRYPT is set";
        return Status::unsupported;
    }
    control::Key key;
    if (options.key_file.empty()) {
        problem = "OFFPATH_KEY_FILE is not set: devices on other systems want the key of their daemon";
        return Status::access;
    }
    if (Status status = control::read_key_file(options.key_file, key, problem); status != Status::ok)
        return status;
    FileDescriptor made;
    if (Status status = control::connect_tcp(address, control::connect_timeout_ms, made, problem);
        status != Status::ok)
        return status;
    auto socket = control::MessageSocket::over_tcp(std::move(made));
    control::Message message;
    std::vector<FileDescriptor> descriptors;
    if (Status status = socket.receive(control::answer_timeout_ms, message, descriptors, problem);
        status != Status::ok)
        return status == Status::peer_lost ? Status::unavailable : status;
    const auto* challenge = std::get_if<control::Challenge>(&message);
    if (challenge == nullptr) {
        problem = "it sent something else than a challenge";
        return Status::protocol;
    }
    control::RemoteHello hello;
    hello.hello = make_hello(options, purpose);
    hello.issued = static_cast<std::uint64_t>(std::time(nullptr));
    hello.nonce = control::draw_nonce();
    const control::Nonce daemon = challenge->nonce;
    control::Secret secret =
        control::job_secret(key, hello.hello.job_high, hello.hello.job_low, hello.issued);
    hello.mac = control::handshake_mac(secret, daemon, hello.nonce, hello);
    Status status = socket.send(hello);
    control::TargetWelcome welcome;
    if (status == Status::ok || status == Status::peer_lost)
        status = take_welcome(socket, welcome, descriptors, message, problem);
    if (status == Status::ok &&
        !control::same(welcome.mac, control::handshake_mac(secret, daemon, hello.nonce, message))) {
        problem = "it does not know the job's secret: the keys of this program and of the daemon differ";
        status = Status::access;
    }
    control::wipe(secret);
    if (status != Status::ok) return status;
    connection.facts = facts_of(welcome, true);
    connection.image_nonce = welcome.image_nonce;
    if (purpose == Purpose::probe) return Status::ok;
    std::unique_ptr<TcpLine> line;
    if (status = TcpLine::open(socket.take_descriptor(), line); status != Status::ok) {
        problem = "no descriptors for its line";
        return status;
    }
    connection.line = std::move(line);
    return Status::ok;
}

}  // namespace

Status connect_target(Purpose purpose, const Place& place, Connection& connection, std::string& problem) {
    AttachOptions options;
    try {
        options = AttachOptions::from_environment(nullptr);
    } catch (const std::invalid_argument& error) {
        problem = error.what();
        return Status::invalid;
    }
    if (!place.directory.empty() || !place.address.empty()) {
        // A daemon makes its directory. A program must not: nobody would serve there.
        std::error_code ignored;
        if (!place.directory.empty() && !std::filesystem::is_directory(place.directory, ignored)) {
            problem = fmt::format("OFFPATH_TARGET_DEVICES: the directory {} is not there", place.directory);
            return Status::unavailable;
        }
        if (!place.directory.empty()) options.directory = place.directory;
        options.devices = place.address;
    }
    std::string why, device = control::socket_path(options.directory);
    Status status;
    if (options.remote()) {
        control::TcpAddress address;
        if (status = client::find_device(options.devices, control::host_name(), address, problem);
            status != Status::ok)
            return status;
        device = control::to_string(address);
        status = connect_remote(options, purpose, address, connection, why);
    } else {
        status = connect_local(options, purpose, connection, why);
    }
    if (status != Status::ok)
        problem = fmt::format("the device at {}: {}", device, why.empty() ? to_string(status) : why);
    return status;
}

}  // namespace offpath::target
