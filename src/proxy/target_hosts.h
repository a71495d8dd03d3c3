// TargetHosts: the processes on this device that run programs' target regions (target/records.h). Each serves
// one program over a line of its own and ends with it; the proxies take no part.
//
// Ownership: the daemon. Threads: the daemon's main thread.
#pragma once

#include "kernel_host/host_process.h"
#include "proxy/accounts.h"
#include "proxy/image_keeper.h"
#include "proxy/newcomer.h"

#include <cstdint>
#include <list>
#include <string>

namespace offpath::proxy {

struct TargetSettings {
    bool local = true;     // whether programs on this system may have target hosts
    bool remote = false;   // whether programs on other systems may: their code comes over the network
    bool encrypt = false;  // true: programs on other systems may not, because their line is in clear
    kernel_host::HostConfig host, remote_host;
    std::shared_ptr<Accounts> accounts;  // whose users remote_host runs as; null: the daemon's
    std::uint64_t spin_us = 50;
    std::uint32_t seconds = 0;  // that a region may take if the program sets no limit; 0: no limit
    std::string node;
    std::string directory;  // of the daemon's socket
    std::uint64_t image_cache_bytes = 0;
};

class TargetHosts {
  public:
    static constexpr std::size_t max_hosts = 1024;

    // `epoll` watches for the ends of the processes, and the sockets of images(). The caller that gets an
    // event from it calls handle().
    TargetHosts(TargetSettings settings, int epoll);
    ~TargetHosts();
    TargetHosts(const TargetHosts&) = delete;
    TargetHosts& operator=(const TargetHosts&) = delete;

    // Answers a hello whose purpose is a target.
    void serve(Newcomer newcomer);
    // True: it was the end of a host, or a request of one.
    bool handle(int fd);
    ImageKeeper& images() { return images_; }
    std::size_t count() const { return hosts_.size(); }

  private:
    struct Host {
        pid_t pid = 0;           // of its warden
        FileDescriptor process;  // pidfd
        std::string client;
        TicketUse ticket;
        std::shared_ptr<const std::string> account;  // its own until it has ended
    };
    bool admit(const Newcomer& newcomer, Status& status, std::string& why) const;
    bool reap(int fd);
    Status start(Newcomer& newcomer, control::TargetWelcome& welcome, std::string& why);

    const TargetSettings settings_;
    const int epoll_;
    std::list<Host> hosts_;
    ImageKeeper images_;
};

}  // namespace offpath::proxy
