// Daemon: the main thread of offpathd. It owns the node's socket and the listener for other systems
// (remote_listener.h), handles handshakes and signals, and starts and stops the proxies. Handshakes have a
// deadline and are read without blocking, so a silent or faulty client delays no other. Ownership: owns the
// proxies. Threads: the main thread.
#pragma once

#include "proxy/endpoint_files.h"
#include "proxy/proxy.h"
#include "proxy/remote_listener.h"
#include "proxy/status_page.h"
#include "proxy/target_hosts.h"

#include <memory>
#include <string>
#include <vector>

namespace offpath::proxy {

// Whether ranks of other proxies may send small operations straight to ours (direct_port.h). automatic: yes
// where the fabric has nothing faster than the direct path's TCP.
enum class Direct : std::uint8_t { automatic, on, off };

struct Options {
    std::string directory;  // empty: no local attach
    std::string listen;     // ADDR[:PORT]; empty: no remote attach
    std::string key_file;   // one of both with `listen`
    int key_fd = -1;
    std::string node;  // empty: the host's name
    std::uint32_t proxies = 1;
    std::vector<int> cpus;  // of the proxies, in turn; empty: any
    std::uint64_t spin_us = 50;
    int ready_fd = -1;
    double idle_exit_s = 0;  // 0: never
    std::string net_devices;
    bool encrypt = false;              // what goes to other proxies, hosts on other systems, and back
    bool replace = false;              // takes the place of a daemon that serves in `directory`
    bool kernels = true;               // whether clients may have kernels run
    std::string allow_kernels;         // directories of libraries for clients on other systems; empty: none
    std::uint32_t kernel_seconds = 0;  // that their runs may take if the program sets no limit; 0: no limit
    std::string kernel_user;           // the user that runs their kernels; empty: this process's user
    bool allow_images = false;         // whether clients on other systems may send code for target regions
    std::uint64_t ticket_seconds = 600;
    std::string host_devices;  // of the links to remote hosts; empty: net_devices
    Direct direct = Direct::automatic;
    std::uint64_t store_mib = 256;        // of messages without a receive that a proxy stores
    std::uint64_t image_cache_mib = 256;  // of images of target regions that are kept for later programs
};

class Daemon {
  public:
    explicit Daemon(Options options) : options_(std::move(options)) {}

    // Serves until a signal or the idle time ends it. After SIGUSR1 it accepts no clients, and ends with its
    // last session. `problem` says why it could not start. The caller must block SIGTERM, SIGINT and SIGUSR1
    // in all threads.
    Status run(std::string& problem);

  private:
    struct LocalHandshake {
        control::MessageSocket socket;
        std::uint64_t deadline_ns = 0;
    };

    Status start(std::string& problem);
    Status start_listening(std::string& problem);
    Status allow_kernels(std::string& problem);
    Status choose_remote_host(const char* option, std::string& problem);
    void prepare_targets();
    Status start_proxy(std::uint32_t index, std::string& problem);
    std::unique_ptr<transport::Transport> open_direct(const transport::Transport& fabric, bool first);
    Status open_host_side(bool first, HostSide& hosts, std::string& problem);
    transport::UcxConfig host_config() const;
    void serve();
    void handle_event(int fd);
    template <typename Work>
    void survive_lack_of_memory(Work work);
    Status take_place(std::string& problem);
    bool handle_signal();
    void drain();
    bool is_drained() const;
    void accept_clients();
    void refused(pid_t pid, const std::string& why);
    void greet(LocalHandshake& handshake);
    void place(Newcomer newcomer);
    void expire_handshakes();
    bool idle_too_long();
    int timeout_ms() const;
    std::uint32_t attached() const;

    Options options_;
    EndpointFiles files_;
    StatusPage status_;
    std::vector<std::unique_ptr<Proxy>> proxies_;
    FileDescriptor epoll_, signals_;
    bool imports_ = false;  // xgvmi works here
    std::vector<LocalHandshake> handshakes_;
    RemoteListener remote_;
    KernelSettings kernels_;
    std::unique_ptr<TargetHosts> targets_;
    LogLimit refusals_;  // on the unix socket
    std::uint64_t idle_since_ns_ = 0;
    bool listening_ = false;
    bool draining_ = false;
    std::string why_ = "offpathd ends";
};

}  // namespace offpath::proxy
