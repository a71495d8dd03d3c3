// offpathd: the daemon of one node's device.
#include "base/environment.h"
#include "base/log.h"
#include "base/patience.h"
#include "command_line/command_line.h"
#include "control/socket.h"
#include "kernel_host/host_process.h"
#include "proxy/cpu_list.h"
#include "proxy/daemon.h"
#include "proxy/info.h"
#include "proxy/steady_memory.h"
#include "trace/trace.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

const char* what_is_missing(bool dir, bool listen, bool key) {
    if (!dir && !listen)
        return "--dir or --listen is needed: the directory for the socket, or the address for remote hosts";
    if (listen && !key) return "--listen needs --key-file or --key-fd: without a key anybody could attach";
    if (!listen && key) return "a key is for --listen, which is not given";
    return nullptr;
}

void open_trace(const std::string& directory, const std::string& node) {
    if (!directory.empty()) setenv("OFFPATH_TRACE", directory.c_str(), 1);
    offpath::trace::About about;
    about.node = node;
    about.program = "offpathd";
    std::string problem;
    if (offpath::trace::open_from_environment(about, problem) != offpath::Status::ok)
        offpath::log::warn(offpath::Code::file, "{}", problem);
}

}  // namespace

int main(int argc, char** argv) try {
    using namespace offpath;
    cli::App app{
        "offpathd serves the host ranks of one node: it moves their communication off their cores.\n"
        "It listens at DIR/<hostname>.sock, for ranks of the same system, and at --listen, for hosts with\n"
        "another one, until SIGTERM, SIGINT or --idle-exit. After SIGUSR1 it takes no more\n"
        "clients and ends with its last session."};
    proxy::Options options;
    std::string cpus, level = "info", log_file, trace_directory;
    bool info = false;
    auto* dir = app.add_option("--dir", options.directory, "Session directory; made if it is not there");
    auto* listen = app.add_option("--listen", options.listen,
                                  "ADDR[:PORT] for hosts on other systems (default port 7471; 0: any)");
    auto* key_file =
        app.add_option("--key-file", options.key_file,
                       "File with the key, 32 to 4096 bytes, that those hosts must know; mode 0600");
    auto* key_fd =
        app.add_option("--key-fd", options.key_fd, "Descriptor to read the key from, up to its end");
    key_fd->check(cli::NonNegativeNumber())->excludes(key_file);
    app.add_flag(
           "--replace", options.replace,
           "Take the place of the daemon that serves in --dir; it keeps its sessions and ends with them")
        ->needs(dir)
        ->excludes(listen);
    app.add_option("--name", options.node, "Name of the node in messages; default: the host name");
    app.add_option("--proxies", options.proxies, "Number of proxies, each a thread")
        ->check(cli::Range(1, 256))
        ->capture_default_str();
    app.add_option("--cpus", cpus,
                   "CPUs to run on, proxies in turn, e.g. 1,4-7; all: wherever there is room");
    app.add_option("--spin-us", options.spin_us,
                   "How long an idle proxy spins before it sleeps; 0 where a core is shared")
        ->check(cli::Range(0, 1000000))
        ->capture_default_str();
    app.add_option("--log-level", level, "trace, debug, info, warn, error or off")->capture_default_str();
    app.add_option("--log-file", log_file, "File to append the log to; default: stderr");
    app.add_option("--trace", trace_directory,
                   "Directory to write a trace to; default: OFFPATH_TRACE, else none");
    app.add_option("--ready-fd", options.ready_fd, "Descriptor to write one byte to when ready");
    app.add_option("--idle-exit", options.idle_exit_s,
                   "End when no rank was attached for so many seconds; 0: never")
        ->check(cli::NonNegativeNumber());
    app.add_option("--net-devices", options.net_devices, "Network devices that UCX may use, e.g. eth0");
    app.add_option("--host-devices", options.host_devices,
                   "Network devices of the link to hosts on other systems; default: as --net-devices");
    app.add_flag(
        "--encrypt", options.encrypt,
        "Encrypt what goes to other daemons and to hosts on other systems; all of a job must do so;\n"
        "default: OFFPATH_ENCRYPT, else no");
    app.add_option("--store-mib", options.store_mib,
                   "Most MiB of messages that a proxy takes in before their receives are posted")
        ->check(cli::Range(0, 1 << 20))
        ->capture_default_str();
    app.add_option("--image-cache-mib", options.image_cache_mib,
                   "Most MiB of target regions' code that are kept for later programs; 0: none")
        ->check(cli::Range(0, 1 << 20))
        ->capture_default_str();
    app.add_flag("!--no-kernels", options.kernels, "Refuse to run kernels of the programs (offpath_compute)");
    app.add_option(
           "--allow-kernels", options.allow_kernels,
           "DIR[:DIR...] of the libraries whose kernels hosts on other systems may have run; default: none")
        ->needs(listen);
    app.add_flag("--allow-images", options.allow_images,
                 "Run target regions of hosts on other systems, whose code they send; default: no")
        ->needs(listen);
    app.add_option(
        "--kernel-user", options.kernel_user,
        "User whom kernels of hosts on other systems run as, or FIRST-LAST, numbers of users, one for\n"
        "each job; needs the right to become them");
    app.add_option("--kernel-seconds", options.kernel_seconds,
                   "Seconds that a kernel or target region may run if its program sets no limit; 0: no limit")
        ->check(cli::Range(0, 31536000))
        ->capture_default_str();
    app.add_option("--ticket-seconds", options.ticket_seconds,
                   "How long a job's secret lets its ranks in, from when it was made")
        ->check(cli::Range(10, 31536000))
        ->capture_default_str();
    const std::map<std::string, proxy::Direct> direct{
        {"auto", proxy::Direct::automatic}, {"on", proxy::Direct::on}, {"off", proxy::Direct::off}};
    app.add_option(
           "--direct", options.direct,
           "Whether ranks of other nodes may ask for small operations without their own proxy; auto:\n"
           "where the network between nodes is TCP")
        ->transform(cli::CheckedTransformer(direct));
    app.add_flag("--info", info, "Print facts about this device as JSON and end");
    if (const std::optional<int> code = app.parse_or_exit(argc, argv)) return *code;
    if (info) {
        log::configure("offpathd", log::parse_level("warn"));
        std::puts(proxy::device_info(options.node, options.net_devices).c_str());
        return 0;
    }
    if (const char* missing = what_is_missing(dir->count() > 0 && !options.directory.empty(),
                                              listen->count() > 0, key_file->count() + key_fd->count() > 0)) {
        std::fprintf(stderr, "offpathd: %s (see --help) [OFP-0106]\n", missing);
        return 2;
    }
    (void)lost_after_ns();  // reports an unusable value now
    options.encrypt = options.encrypt || environment::flag("OFFPATH_ENCRYPT", false);
    if (options.encrypt) setenv("OFFPATH_ENCRYPT", "1", 1);  // for the links to hosts
    proxy::run_without_thread_caches(argv);
    const std::string node = options.node.empty() ? control::host_name() : options.node;
    log::configure(fmt::format("offpathd[{}]", node), log::parse_level(level), log_file);
    open_trace(trace_directory, node);
    if (!cpus.empty()) {
        options.cpus = proxy::parse_cpu_list(cpus);
        proxy::use_cpus(options.cpus);
    }
    // Blocked before any thread exists, so that only the signalfd receives them.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    kernel_host::adopt_orphans();
    std::string problem;
    if (proxy::Daemon(options).run(problem) != Status::ok) {
        std::fprintf(stderr, "offpathd: %s [OFP-0106]\n", problem.c_str());
        return 1;
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "offpathd: %s [OFP-0106]\n", error.what());
    return 2;
}
