#include "proxy/session.h"

#include "base/log.h"
#include "control/shared_channel.h"
#include "transport/encrypted/encrypted.h"

#include <offpath/context.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include <new>

namespace offpath::proxy {
namespace {

constexpr std::uint64_t drain_patience_ns = 2'000'000'000;

memory::GeneralBackEnd general_back_end(control::BackEndRequest request) {
    switch (request) {
        case control::BackEndRequest::cma:
            return memory::GeneralBackEnd::cma;
        case control::BackEndRequest::staged:
            return memory::GeneralBackEnd::staged;
        case control::BackEndRequest::automatic:
        case control::BackEndRequest::map:
            break;
    }
    return memory::GeneralBackEnd::automatic;
}

std::string describe(const Newcomer& newcomer) {
    return fmt::format("rank {} of job {:08x} (pid {}{})", newcomer.hello.job_rank,
                       static_cast<std::uint32_t>(newcomer.hello.job_high), newcomer.peer.pid,
                       newcomer.remote == nullptr ? "" : " at " + newcomer.remote->address);
}

// A client and its device both encrypt, or neither does. Their addresses show it.
Status check_encryption(std::span<const std::byte> client, std::span<const std::byte> device,
                        std::string& problem) {
    const bool client_encrypts = transport::is_encrypted_address(client);
    if (client_encrypts == transport::is_encrypted_address(device)) return Status::ok;
    problem = client_encrypts
                  ? "the program encrypts (OFFPATH_ENCRYPT=1), its device does not (offpathd --encrypt)"
                  : "the device encrypts (offpathd --encrypt), the program does not (OFFPATH_ENCRYPT=1)";
    return Status::access;
}

}  // namespace

Status Session::make_local(const Newcomer& newcomer, memory::SessionMemoryConfig config, SessionParts& parts,
                           std::string& problem) {
    control::ChannelMemory channel;
    FileDescriptor channel_fd;
    if (Status status = control::ChannelMemory::create({}, channel, channel_fd); status != Status::ok) {
        problem = "no memory for the channel";
        return status;
    }
    config.pid = newcomer.peer.pid;
    config.probe_address = newcomer.hello.probe_address;
    config.probe_value = newcomer.hello.probe_value;
    config.given_up = &channel.header().given_up;
    config.writing = &channel.header().writing;
    if (Status status = memory::make_session_memory(std::move(config), parts.memory, problem);
        status != Status::ok)
        return status;
    FileDescriptor doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    parts.for_client.push_back(std::move(channel_fd));
    parts.for_client.emplace_back(dup(doorbell.get()));
    if (!doorbell || !parts.for_client.back()) {
        problem = "no descriptor for the doorbell";
        return Status::system;
    }
    if (parts.memory->general_back_end() == memory::BackEnd::staged) {
        memory::StagingFiles staging = parts.memory->take_staging_files();
        parts.for_client.emplace_back(staging.area.release());
        parts.for_client.emplace_back(staging.bell.release());
    }
    auto shared = std::make_unique<control::SharedProxyChannel>(std::move(channel), std::move(doorbell));
    parts.shared = shared.get();
    parts.channel = std::move(shared);
    return Status::ok;
}

Status Session::make_remote(const Newcomer& newcomer, const HostSide& hosts,
                            memory::SessionMemoryConfig config, SessionParts& parts, std::string& problem) {
    if (hosts.links == nullptr) {
        problem = "this proxy has no link to hosts";
        return Status::unsupported;
    }
    parts.token = control::draw_token();
    if (Status status = check_encryption(newcomer.remote->link, hosts.links->address(), problem);
        status != Status::ok)
        return status;
    if (Status status = hosts.links->open(newcomer.remote->link, parts.token, {}, parts.link, problem);
        status != Status::ok)
        return status;
    config.exported = hosts.memory.get();
    config.transfers = parts.link->take_transfers();
    parts.channel = parts.link->take_channel();
    return memory::make_session_memory(std::move(config), parts.memory, problem);
}

Status Session::send_welcome(Newcomer& newcomer, const SessionSetting& setting, SessionParts& parts) {
    const Identity& identity = setting.identity;
    const bool staged = parts.memory->general_back_end() == memory::BackEnd::staged;
    control::Welcome welcome;
    welcome.proxy = identity.id;
    welcome.proxy_index = identity.index;
    welcome.back_end = static_cast<std::uint8_t>(parts.memory->general_back_end());
    welcome.progress = staged ? OFFPATH_PROGRESS_AGENT : OFFPATH_PROGRESS_DEVICE;
    welcome.daemon_pid = static_cast<std::uint32_t>(getpid());
    welcome.staging = staged && newcomer.remote == nullptr;
    welcome.node = identity.node;
    welcome.fabric = identity.fabric;
    welcome.address = identity.address;
    if (newcomer.remote == nullptr) {
        if (setting.direct != nullptr) {
            welcome.direct = identity.direct;
            welcome.direct_secret = setting.direct->admit({newcomer.hello.job_high, newcomer.hello.job_low},
                                                          newcomer.hello.job_rank);
        }
        std::vector<int> descriptors;
        for (const FileDescriptor& fd : parts.for_client)
            descriptors.push_back(fd.get());
        return newcomer.socket.send(welcome, descriptors);
    }
    const RemotePeer& peer = *newcomer.remote;
    control::RemoteWelcome remote;
    remote.welcome = std::move(welcome);
    remote.token = parts.token;
    remote.imports = setting.hosts.memory != nullptr;
    remote.link = parts.link->address();
    remote.mac = control::handshake_mac(peer.secret, peer.daemon_nonce, peer.client_nonce, remote);
    const Status status = newcomer.socket.send(remote);
    if (transport::is_encrypted_address(remote.link))
        newcomer.socket.encrypt(std::make_unique<control::FrameCipher>(
            peer.secret, peer.daemon_nonce, peer.client_nonce, control::FrameCipher::Side::daemon));
    return status;
}

std::unique_ptr<Session> Session::open(const SessionSetting& proxy, Newcomer newcomer) {
    SessionSetting setting = proxy;
    if (newcomer.remote != nullptr) setting.direct = nullptr;  // the client's memory is not on this system
    const std::string name = describe(newcomer);
    const auto fail = [&](Status status, const std::string& why) {
        log::error(Code::refused, "{} cannot be served: {}", name, why);
        // It does not matter if the client is already gone.
        (void)newcomer.socket.send(control::Refusal{status, why});
        return nullptr;
    };
    memory::SessionMemoryConfig config;
    config.client = name;
    config.general = general_back_end(newcomer.hello.back_end);
    SessionParts parts;
    std::string problem;
    const Status status = newcomer.remote == nullptr
                              ? make_local(newcomer, std::move(config), parts, problem)
                              : make_remote(newcomer, setting.hosts, std::move(config), parts, problem);
    if (status != Status::ok) return fail(status, problem);
    const engine::JobId job{newcomer.hello.job_high, newcomer.hello.job_low};
    const Status opened = setting.engine.open_session(job, newcomer.hello.fabric, newcomer.hello.job_rank,
                                                      *parts.memory, &parts.session);
    control::wipe(newcomer.hello.fabric);
    if (opened != Status::ok) return fail(opened, "its job is here, with another secret");
    if (send_welcome(newcomer, setting, parts) != Status::ok) {
        log::warn(Code::client_lost, "{} went away before it was welcomed", name);
        if (setting.direct != nullptr) setting.direct->forget(job, newcomer.hello.job_rank);
        setting.engine.close_session(parts.session, Status::canceled);
        return nullptr;
    }
    log::info("{} attached to proxy {}, ordinary memory by {}", name, setting.identity.index,
              memory::to_string(parts.memory->general_back_end()));
    return std::unique_ptr<Session>(new Session(setting, std::move(newcomer), std::move(parts)));
}

Session::Session(const SessionSetting& setting, Newcomer newcomer, SessionParts parts)
    : engine_(setting.engine),
      direct_(setting.direct),
      job_{newcomer.hello.job_high, newcomer.hello.job_low},
      ticket_(std::move(newcomer.ticket)),
      socket_(std::move(newcomer.socket)),
      process_(socket_.remote() ? FileDescriptor() : control::peer_process(socket_.fd())),
      link_(std::move(parts.link)),
      channel_(std::move(parts.channel)),
      shared_channel_(parts.shared),
      memory_(std::move(parts.memory)),
      session_(parts.session),
      name_(describe(newcomer)),
      job_rank_(newcomer.hello.job_rank),
      kernel_settings_(setting.kernels),
      clock_(setting.clock),
      epoll_(setting.epoll),
      peer_(newcomer.peer),
      proxies_(newcomer.hello.job_size, 0) {}

Session::~Session() {
    if (direct_ != nullptr) direct_->forget(job_, job_rank_);
}

unsigned Session::drain(unsigned limit) try {
    unsigned count = 0;
    if (shared_channel_ != nullptr && shared_channel_->given_up()) {
        end(Status::peer_lost, "it has given this device up, which did not answer it in time", false);
        return 1;
    }
    while (count < limit && !ended_) {
        std::span<const std::byte> record;
        const auto next = channel_->next(record);
        if (next == control::NextRecord::none) break;
        ++count;
        if (next == control::NextRecord::broken) {
            end(Status::protocol, "its command ring holds nonsense", true);
            break;
        }
        control::Command command;
        if (control::decode_command(record, command, problem_) != Status::ok ||
            !std::visit([this](const auto& c) { return execute(c); }, command)) {
            end(Status::protocol, problem_, true);
        }
    }
    return count;
} catch (const std::bad_alloc&) {
    end_for_memory();
    return 1;
}

void Session::end_for_memory() {
    end(Status::memory, "the device has no memory left for what this rank asks of it", true);
}

void Session::read_socket() try {
    for (int i = 0; i < 64 && !ended_; ++i) {
        control::Received received;
        const Status status = socket_.receive_bytes(received);
        if (status == Status::retry) return;
        if (status == Status::peer_lost || status == Status::system) {
            // The commands that are left tell who its peers are; close() informs the peers.
            drain(UINT32_MAX);
            end(Status::peer_lost, "its process is gone", false);
            return;
        }
        control::Message message;
        if (status != Status::ok) {
            end(Status::protocol, received.problem, true);
        } else if (Status decoded = control::decode_message(received.bytes, message, problem_);
                   decoded != Status::ok) {
            end(decoded, problem_, true);
        } else {
            answer_message(message, std::move(received.descriptors));
        }
    }
} catch (const std::bad_alloc&) {
    end_for_memory();
}

void Session::process_ended() {
    read_socket();  // it may have said goodbye
    if (ended_) return;
    drain(UINT32_MAX);
    end(Status::peer_lost, "its process is gone", false);
}

void Session::tend(std::uint64_t now_ns) {
    if (ended_ || socket_.tend(now_ns) == Status::ok) return;
    drain(UINT32_MAX);
    end(Status::peer_lost,
        fmt::format("nothing was heard of it for {} s", control::silence_ns / 1'000'000'000), false);
}

void Session::answer_message(const control::Message& message, std::vector<FileDescriptor> descriptors) {
    if (const auto* region = std::get_if<control::RegisterRegion>(&message)) {
        register_region(*region, std::move(descriptors));
    } else if (const auto* exported = std::get_if<control::RegisterExported>(&message)) {
        register_exported(*exported);
    } else if (const auto* pages = std::get_if<control::SharePages>(&message)) {
        share_pages(*pages, std::move(descriptors));
    } else if (const auto* revoke = std::get_if<control::RevokeRegion>(&message)) {
        revoke_region(revoke->id);
    } else if (const auto* kernel = std::get_if<control::LoadKernel>(&message)) {
        // An unload that was posted before comes first: the library may be the same.
        drain(UINT32_MAX);
        if (!ended_) load_kernel(*kernel);
    } else if (const auto* taken = std::get_if<control::KernelTextsTaken>(&message)) {
        if (kernels_ == nullptr || !kernels_->taken(*taken))
            end(Status::protocol, "it has taken texts of kernels that were not sent", true);
    } else if (const auto* asked = std::get_if<control::KernelTextsAsked>(&message)) {
        answer_about_texts(*asked);
    } else if (std::holds_alternative<control::CopiesAsked>(message)) {
        const engine::Copies& copies = session_->copies;
        reply(control::CopiesAsked{copies.direct, copies.once, copies.more});
    } else if (std::holds_alternative<control::Goodbye>(message)) {
        // Commands posted before the goodbye still count.
        drain(UINT32_MAX);
        if (!ended_) end(Status::canceled, "", false);
    } else {
        end(Status::protocol, "a message that only a daemon sends, or a second hello", true);
    }
}

void Session::register_region(const control::RegisterRegion& message,
                              std::vector<FileDescriptor> descriptors) {
    if (remote()) {
        reply(control::RegionReply{message.id, Status::unsupported, 0, 0});
        return;
    }
    if (descriptors.size() != 1) {
        end(Status::protocol,
            fmt::format("region {} came with {} descriptors instead of one", message.id, descriptors.size()),
            true);
        return;
    }
    const Status status = memory_->add_region(message.id, message.address, message.bytes,
                                              memory::File(descriptors.front().release()));
    reply(control::RegionReply{message.id, status, static_cast<std::uint8_t>(memory::BackEnd::map),
                               OFFPATH_PROGRESS_DEVICE});
}

void Session::share_pages(const control::SharePages& message, std::vector<FileDescriptor> descriptors) {
    Status status = Status::unsupported;
    if (!remote() && descriptors.size() == 1)
        status =
            memory_->share_pages(message.address, message.bytes, memory::File(descriptors.front().release()));
    reply(control::RegionReply{message.id, status, static_cast<std::uint8_t>(memory::BackEnd::cma),
                               OFFPATH_PROGRESS_DEVICE});
}

void Session::register_exported(const control::RegisterExported& message) {
    const Status status =
        memory_->add_exported_region(message.id, message.address, message.bytes, message.blob);
    reply(control::RegionReply{message.id, status, static_cast<std::uint8_t>(memory::BackEnd::xgvmi),
                               OFFPATH_PROGRESS_DEVICE});
}

void Session::revoke_region(std::uint64_t id) {
    const Status status = memory_->remove_region(id);
    if (status == Status::retry) {
        revoking_.push_back(id);
    } else {
        if (kernels_ != nullptr) kernels_->region_gone(id);
        reply(control::RegionReply{id, status, 0, 0});
    }
}

void Session::reply(const control::Message& message) {
    const Status status = socket_.send(message);
    if (status == Status::ok || ended_) return;
    // A client waits for the answer to each question. One whose socket is full of unread answers breaks that
    // rule.
    end(status == Status::retry ? Status::protocol : Status::peer_lost,
        status == Status::retry ? "it does not read the answers to its messages" : "its process is gone",
        false);
}

unsigned Session::progress_memory() {
    unsigned work = memory_->progress();
    if (kernels_ != nullptr) work += kernels_->progress();
    std::string why;
    const Status health = link_ != nullptr ? link_->health(why) : memory_->health();
    if (health == Status::ok || ended_) return work;
    // The commands that are left tell who its peers are; close() informs the peers.
    if (health == Status::peer_lost) drain(UINT32_MAX);
    end(health, why.empty() ? "its staging area holds nonsense, or its agent has ended" : why, true);
    return work;
}

void Session::deliver() {
    if (!completed_some_) return;
    completed_some_ = false;
    channel_->wake();
    if (revoking_.empty() || ended_) return;
    std::erase_if(revoking_, [this](std::uint64_t id) {
        const Status status = memory_->remove_region(id);
        if (status == Status::retry) return false;
        if (kernels_ != nullptr) kernels_->region_gone(id);
        reply(control::RegionReply{id, status, 0, 0});
        return true;
    });
}

void Session::end(Status reason, std::string_view why, bool tell) {
    if (ended_) return;
    ended_ = true;
    reason_ = reason;
    if (reason == Status::canceled) {
        log::info("{} detached; it had {} teams", name_, teams_made_);
    } else {
        log::error(Code::client_lost, "the session of {} ends: {} ({} operations were outstanding)", name_,
                   why, outstanding_);
    }
    // It does not matter if the client is already gone.
    if (tell) (void)socket_.send(control::Refusal{reason, std::string(why)});
    ended_ns_ = clock_.now_ns();
    abandoned_ = reason == Status::peer_lost;
    if (abandoned_) {
        memory_->abandon(reason);
    } else {
        memory_->stop(reason);
    }
    if (kernels_ != nullptr) kernels_->stop(reason);
}

bool Session::close() {
    // Peers learn of the loss of this rank through the operations that they share with it.
    if (session_ != nullptr) {
        if (engine_.close_session(session_, reason_ == Status::canceled ? reason_ : Status::peer_lost))
            session_ = nullptr;
    }
    const bool kernels_closed = kernels_ == nullptr || kernels_->closed();
    // After a failed allocation an operation may be lost between the session and the engine. The engine has
    // released them all.
    const bool settled = (outstanding_ == 0 && unwatched_ == 0) || reason_ == Status::memory;
    if (session_ == nullptr && settled && kernels_closed && memory_->drained()) return true;
    // An agent that does not answer must not keep the session for ever.
    if (!abandoned_ && clock_.now_ns() - ended_ns_ > drain_patience_ns) {
        abandoned_ = true;
        memory_->abandon(reason_);
    }
    return false;
}

bool Session::prepare_sleep() {
    return channel_->prepare_sleep() && (kernels_ == nullptr || !kernels_->has_work()) &&
           memory_->arm() == Status::ok;
}

}  // namespace offpath::proxy
