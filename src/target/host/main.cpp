// offpath-target-host: holds the device images and the device memory of one program, and runs its target
// regions (service.h). The daemon starts it, as
//   offpath-target-host PARENT [CPU,CPU,...] [UID:GID] shared|tcp PROGRAM-PID PROBE-ADDRESS PROBE-VALUE
//   SPIN-US DEVICE DIRECTORY
// with its socket, the socket of its daemon's images and, for `shared`, the line's memory file and the
// program's pidfd at given descriptors. PROGRAM-PID is 0 if this process cannot read the program's memory.
// DEVICE is for people who list processes. DIRECTORY is where the daemon's socket is, for libraries that
// attach to the daemon.
#include "base/file_descriptor.h"
#include "kernel_host/host_process.h"
#include "memory/cma.h"
#include "memory/file.h"
#include "target/host/service.h"
#include "target/shared_line.h"
#include "target/tcp_line.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

offpath::target::Service* service = nullptr;
pid_t host = 0;

// A process that a region has made by fork has this one's memory, and the other end of its line, but it is
// not this one: what it does is nothing to tell the program.
bool is_host() {
    return getpid() == host;
}

std::uint64_t instruction_of(const void* context) {
#if defined(__x86_64__)
    return static_cast<std::uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

extern "C" void on_fatal_signal(int number, siginfo_t* facts, void* context) {
    const bool access = (number == SIGSEGV || number == SIGBUS) && facts->si_code > 0;
    const std::uint64_t address = access ? reinterpret_cast<std::uint64_t>(facts->si_addr) : 0;
    const int error = errno;
    if (access && number == SIGSEGV && service->page_fault(address, instruction_of(context))) {
        errno = error;
        return;
    }
    // What goes wrong from here on ends the process at once.
    signal(number, SIG_DFL);
    if (!is_host()) {
        raise(number);  // when this function has returned
        return;
    }
    service->obituary(number, address);
    _exit(128 + number);
}

void catch_fatal_signals() {
    struct sigaction action {};
    action.sa_sigaction = on_fatal_signal;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM})
        sigaction(signal, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    // A function may call exit().
    std::atexit([] { service->obituary(0); });
}

// In a process that a function has made by fork, this process's threads are missing, and what libraries have
// registered for the end would wait for them. What is registered last runs first.
void end_children_at_once() {
    const auto in_child = [] {
        on_exit(
            [](int code, void*) {
                std::fflush(nullptr);
                _exit(code);
            },
            nullptr);
    };
    pthread_atfork(nullptr, nullptr, in_child);
}

// Libraries in this process attach to the daemon that has started it, whatever the daemon's own environment
// says.
void use_daemon(const char* directory) {
    for (const char* name : {"OFFPATH_DEVICES", "OFFPATH_AUTOSTART", "OFFPATH_BACK_END", "OFFPATH_KEY_FILE"})
        unsetenv(name);
    setenv("OFFPATH_DIR", directory, 1);
    // Images bring OpenMP's runtime, which would look for devices of this device.
    setenv("OMP_TARGET_OFFLOAD", "DISABLED", 1);
}

// A daemon serves root and its own user, to whom its directory belongs.
std::string why_no_daemon(const char* directory) {
    struct stat facts {};
    const uid_t user = geteuid();
    if (user == 0 || (stat(directory, &facts) == 0 && facts.st_uid == user)) return {};
    return fmt::format(
        "regions run here as user {}, who may not attach to the daemon; they can use MPI if "
        "offpathd runs without --kernel-user",
        user);
}

}  // namespace

// These functions answer in place of OpenMP's runtime: this is a device.
extern "C" {
__attribute__((visibility("default"))) int omp_is_initial_device() {
    return 0;
}
__attribute__((visibility("default"))) int omp_is_initial_device_() {
    return 0;
}
// Libraries of the device call this before they end the process.
__attribute__((visibility("default"))) void offpath_target_flush_output() {
    if (is_host()) service->flush_output();
}
}

// NOLINTNEXTLINE(bugprone-exception-escape): an exception ends this process, and the program learns of it
int main(int argc, char** argv) {
    using namespace offpath;
    if (argc != 11) {
        std::fprintf(stderr, "offpath-target-host is started by offpathd [OFP-0106]\n");
        return 2;
    }
    const bool shared = std::strcmp(argv[4], "shared") == 0;
    kernel_host::Watched watched;
    watched.sockets = {kernel_host::first_host_fd};
    constexpr int program_fd = kernel_host::first_host_fd + 3;
    if (shared && fcntl(program_fd, F_GETFD) >= 0) watched.pidfds = {program_fd};
    if (!kernel_host::settle_host(argv, watched)) return 1;
    for (const int pidfd : watched.pidfds)
        close(pidfd);
    FileDescriptor socket(kernel_host::first_host_fd), images(kernel_host::first_host_fd + 1);
    fcntl(images.get(), F_SETFD, FD_CLOEXEC);  // not for programs that functions start
    std::unique_ptr<target::Line> line;
    if (shared) {
        const memory::File file(kernel_host::first_host_fd + 2);
        std::unique_ptr<target::SharedLine> made;
        if (target::SharedLine::open(target::SharedLine::Side::host, file, std::move(socket), made) !=
            Status::ok)
            return 1;
        line = std::move(made);
    } else {
        std::unique_ptr<target::TcpLine> made;
        if (target::TcpLine::open(std::move(socket), made) != Status::ok) return 1;
        line = std::move(made);
    }
    const auto pid = static_cast<pid_t>(std::atol(argv[5]));
    memory::Cma program;
    std::string why_not;
    target::ServiceOptions options;
    if (pid > 0 &&
        memory::cma_probe(pid, std::strtoull(argv[6], nullptr, 10), std::strtoull(argv[7], nullptr, 10),
                          why_not) == Status::ok &&
        memory::Cma::open(pid, program) == Status::ok)
        options.program = &program;
    // The program helps with large copies.
    if (options.program != nullptr) memory::allow_cma(pid);
    options.program_pid = pid;
    options.no_daemon = why_no_daemon(argv[10]);
    use_daemon(argv[10]);
    options.spin_ns = std::strtoull(argv[8], nullptr, 10) * 1000;
    target::Service serving(*line, std::move(images), options);
    service = &serving;
    host = getpid();
    catch_fatal_signals();
    end_children_at_once();
    (void)serving.run();
    // Run no destructors, because functions may still use the objects and may run forever.
    std::_Exit(0);
}
