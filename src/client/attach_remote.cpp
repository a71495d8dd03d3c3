// Attaches to a device that has an operating system of its own. OFFPATH_DEVICES says where it is. Rare
// messages go over TCP, everything else over the link. Both sides prove that they know the job's secret.
#include "base/log.h"
#include "client/attach.h"
#include "client/devices.h"
#include "control/message_socket.h"
#include "control/tcp_socket.h"
#include "link/plugin/plugin_loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

namespace offpath::client {
namespace {

class DeviceHandshake {
  public:
    DeviceHandshake(const AttachOptions& options, const control::Secret& secret,
                    control::MessageSocket& socket)
        : options_(options), secret_(secret), socket_(socket) {}

    Status run(std::vector<std::byte> link_address, control::RemoteWelcome& welcome, std::string& problem) {
        control::Message message;
        if (Status status = next(message, problem); status != Status::ok) return status;
        const auto* challenge = std::get_if<control::Challenge>(&message);
        if (challenge == nullptr) return unexpected("a challenge", problem);

        control::RemoteHello hello;
        hello.hello = options_.hello();
        hello.issued = options_.issued;
        hello.nonce = control::draw_nonce();
        hello.link = std::move(link_address);
        hello.mac = control::handshake_mac(secret_, challenge->nonce, hello.nonce, hello);
        const control::Nonce daemon = challenge->nonce;
        if (Status status = socket_.send(hello); status != Status::ok && status != Status::peer_lost)
            return status;

        if (Status status = next(message, problem); status != Status::ok) return status;
        auto* answer = std::get_if<control::RemoteWelcome>(&message);
        if (answer == nullptr) return unexpected("a welcome", problem);
        if (!control::same(answer->mac, control::handshake_mac(secret_, daemon, hello.nonce, message))) {
            problem = "it does not know the job's secret: the keys of this job and of the daemon differ";
            return Status::access;
        }
        welcome = std::move(*answer);
        if (options_.encrypt)
            socket_.encrypt(std::make_unique<control::FrameCipher>(secret_, daemon, hello.nonce,
                                                                   control::FrameCipher::Side::client));
        return Status::ok;
    }

  private:
    Status next(control::Message& message, std::string& problem) {
        std::vector<FileDescriptor> descriptors;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
        const Status status =
            socket_.receive(static_cast<int>(std::max<std::int64_t>(left, 0)), message, descriptors, problem);
        if (status == Status::peer_lost) return Status::unavailable;
        if (status == Status::unavailable)
            problem = fmt::format("it did not answer within {} s", control::answer_timeout_ms / 1000);
        const auto* refusal = status == Status::ok ? std::get_if<control::Refusal>(&message) : nullptr;
        if (refusal == nullptr) return status;
        problem = "it refused: " + refusal->text;
        if (refusal->text == control::not_authenticated)
            problem += " (is OFFPATH_KEY_FILE the daemon's key?)";
        return is_error(refusal->status) ? refusal->status : Status::unavailable;
    }
    static Status unexpected(const char* wanted, std::string& problem) {
        problem = fmt::format("it answered with something else than {}", wanted);
        return Status::protocol;
    }

    using Clock = std::chrono::steady_clock;
    const Clock::time_point end_ = Clock::now() + std::chrono::milliseconds(control::answer_timeout_ms);
    const AttachOptions& options_;
    const control::Secret& secret_;
    control::MessageSocket& socket_;
};

// The device could import our memory. Whether we can export it is a separate question, and attaching succeeds
// even if we cannot.
void open_exports(const AttachOptions& options, Attachment& made) {
    std::unique_ptr<memory::HostExporter> exporter;
    std::string problem;
    if (link::load_host_exporter(options.host_devices, exporter, problem) == Status::ok) {
        made.exports = std::make_unique<ExportedRegions>(std::move(exporter));
    } else {
        log::warn(Code::slower_way, "the device could use xgvmi, but this side cannot export memory: {}",
                  problem);
    }
}

Status attach_at(const control::TcpAddress& address, const AttachOptions& options, Attachment& made,
                 std::string& problem) {
    if (options.back_end == control::BackEndRequest::cma) {
        problem = "OFFPATH_BACK_END=cma needs a daemon on this system; auto, map or staged is accepted";
        return Status::unsupported;
    }
    link::HostLinkOptions link_options;
    link_options.devices = options.host_devices;
    if (Status status = link::load_host_link(link_options, made.link, problem); status != Status::ok)
        return status;
    const std::vector<std::byte> link_address = made.link->address();
    if (link_address.size() > control::max_link_address_bytes) {
        problem = fmt::format(
            "the link's address has {} bytes; at most {} are accepted (name fewer devices in "
            "OFFPATH_HOST_DEVICES)",
            link_address.size(), control::max_link_address_bytes);
        return Status::unsupported;
    }

    FileDescriptor connection;
    if (Status status = control::connect_tcp(address, control::connect_timeout_ms, connection, problem);
        status != Status::ok)
        return status;
    control::MessageSocket socket = control::MessageSocket::over_tcp(std::move(connection));
    control::RemoteWelcome welcome;
    if (Status status = DeviceHandshake(options, options.secret, socket).run(link_address, welcome, problem);
        status != Status::ok)
        return status;
    if (Status status = made.link->connect(welcome.link, welcome.token, {}, made.channel, problem);
        status != Status::ok)
        return status;
    made.welcome = std::move(welcome.welcome);
    if (welcome.imports) open_exports(options, made);
    made.line = std::make_unique<DeviceLine>(std::move(socket));
    return Status::ok;
}

}  // namespace

Status attach_remote(const AttachOptions& options, Attachment& attachment, std::string& problem) {
    const std::string node = control::host_name();
    control::TcpAddress address;
    if (Status status = find_device(options.devices, node, address, problem); status != Status::ok)
        return status;
    Attachment made;
    made.device = control::to_string(address);
    std::string why;
    const Status status = attach_at(address, options, made, why);
    if (status != Status::ok) {
        problem = fmt::format("the device of node {} at {}: {}", node, made.device,
                              why.empty() ? to_string(status) : why);
        return status;
    }
    attachment = std::move(made);
    return Status::ok;
}

}  // namespace offpath::client
