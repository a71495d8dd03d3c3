#include "memory/cma.h"

#include "base/log.h"
#include "memory/copy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace offpath::memory {

namespace {

Status from_errno(int error) {
    switch (error) {
        case EFAULT:
            return Status::access;
        case ESRCH:
            return Status::peer_lost;
        case EPERM:
        case ENOSYS:
            return Status::unsupported;
        case ENOMEM:
            return Status::memory;
        default:
            return Status::system;
    }
}

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// Says that a write is under way, to a process that may give this one up.
class WriteMark {
  public:
    explicit WriteMark(std::atomic<std::uint32_t>* writing) : writing_(writing) {
        // Seq_cst, as is the load of `given_up` that follows: either that process sees the mark, or this one
        // sees that it is given up.
        if (writing_ != nullptr) writing_->fetch_add(1, std::memory_order_seq_cst);
    }
    ~WriteMark() {
        if (writing_ != nullptr) writing_->fetch_sub(1, std::memory_order_release);
    }
    WriteMark(const WriteMark&) = delete;
    WriteMark& operator=(const WriteMark&) = delete;

  private:
    std::atomic<std::uint32_t>* const writing_;
};

// `files` are used where the call is refused. Null: there are none.
Status transfer(Call call, pid_t pid, PieceLists& lists, int& error, ProcessFiles* files = nullptr,
                const std::atomic<std::uint32_t>* given_up = nullptr,
                std::atomic<std::uint32_t>* writing = nullptr) {
    while (!lists.over()) {
        const WriteMark mark(writing);
        // Check as late as possible, because this process may have been stopped for hours.
        if (given_up != nullptr && given_up->load(std::memory_order_seq_cst) != 0) {
            error = ESRCH;
            return Status::peer_lost;
        }
        lists.fill();
        const std::span<const iovec> here = lists.here(), there = lists.there();
        ssize_t moved = call(pid, here.data(), here.size(), there.data(), there.size(), 0);
        if (moved < 0 && errno == EPERM && files != nullptr && files->usable())
            moved = files->move(call == process_vm_writev, here, there);
        if (moved <= 0) {
            error = moved == 0 ? EFAULT : errno;
            if (error == EINTR) continue;
            return from_errno(error);
        }
        lists.moved(static_cast<std::size_t>(moved));
    }
    return Status::ok;
}

// Logs a failed copy. If the process is gone, its session logs that once for all outstanding copies.
void say(const char* what, std::span<const ForeignPiece> pieces, std::uint64_t address, pid_t pid,
         int error) {
    std::size_t bytes = 0;
    for (const ForeignPiece& piece : pieces)
        bytes += piece.bytes;
    constexpr auto format = FMT_STRING("{} {} bytes in {} pieces of process {}, at {:#x}: {}");
    if (error == ESRCH)
        log::debug(format, what, bytes, pieces.size(), pid, address, std::strerror(error));
    else
        log::warn(Code::host_memory, format, what, bytes, pieces.size(), pid, address, std::strerror(error));
}

}  // namespace

bool allow_cma(pid_t tracer) {
    return prctl(PR_SET_PTRACER, static_cast<unsigned long>(tracer), 0, 0, 0) == 0;
}

Status cma_probe(pid_t pid, std::uint64_t address, std::uint64_t value, std::string& why_not) {
    if (pid <= 0) {
        why_not = "the client's process is not visible here (another PID namespace)";
        return Status::unsupported;
    }
    std::uint64_t found = 0;
    int error = 0;
    const ForeignPiece word{address, reinterpret_cast<std::byte*>(&found), sizeof found};
    PieceLists lists({&word, 1}, false);
    if (transfer(process_vm_readv, pid, lists, error) != Status::ok) {
        why_not = fmt::format("process_vm_readv of process {}: {}", pid, std::strerror(error));
        if (error == EPERM)
            why_not += " (needs the same user, a dumpable process, and ptrace allowed by seccomp and Yama)";
        return Status::unsupported;
    }
    if (found != value) {
        why_not = fmt::format("process {} holds another value at the probed address", pid);
        return Status::unsupported;
    }
    return Status::ok;
}

Status Cma::open(pid_t pid, Cma& cma, const std::atomic<std::uint32_t>* given_up,
                 std::atomic<std::uint32_t>* writing) {
    if (pid <= 0) return Status::invalid;
    File process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process && errno != ENOSYS) {
        log::warn(Code::host_memory, "pidfd_open of process {}: {}", pid, std::strerror(errno));
        return errno == ESRCH ? Status::peer_lost : Status::system;
    }
    cma.pid_ = pid;
    cma.process_ = std::move(process);
    cma.files_ = std::make_unique<ProcessFiles>(pid);
    cma.given_up_ = given_up;
    cma.writing_ = writing;
    return Status::ok;
}

bool Cma::alive() const {
    if (!process_) return true;  // a kernel without pidfds
    pollfd ended{process_.get(), POLLIN, 0};
    return poll(&ended, 1, 0) == 0;
}

Status Cma::read(std::uint64_t address, void* destination, std::size_t bytes) const {
    const ForeignPiece piece{address, static_cast<std::byte*>(destination), bytes};
    return read({&piece, 1});
}

Status Cma::write(std::uint64_t address, const void* source, std::size_t bytes) const {
    auto* const from = static_cast<std::byte*>(const_cast<void*>(source));  // an iovec has no const
    const ForeignPiece piece{address, from, bytes};
    return write({&piece, 1});
}

Status Cma::read(std::span<const ForeignPiece> pieces) const {
    if (!alive()) return Status::peer_lost;
    int error = 0;
    PieceLists lists(pieces, true);
    const Status status = transfer(process_vm_readv, pid_, lists, error, files_.get(), given_up_);
    if (status != Status::ok) say("reading", pieces, lists.address(), pid_, error);
    return status;
}

Status Cma::write(std::span<const ForeignPiece> pieces) const {
    if (!alive()) return Status::peer_lost;
    int error = 0;
    PieceLists lists(pieces, false);
    const Status status = transfer(process_vm_writev, pid_, lists, error, files_.get(), given_up_, writing_);
    if (status != Status::ok) say("writing", pieces, lists.address(), pid_, error);
    return status;
}

Status Cma::read_mapped(const std::byte* source, std::byte* destination, std::size_t bytes) const {
    if (given_up_ != nullptr && given_up_->load(std::memory_order_seq_cst) != 0) return Status::peer_lost;
    copy_bytes(destination, source, bytes);
    return Status::ok;
}

Status Cma::write_mapped(std::byte* destination, const std::byte* source, std::size_t bytes) const {
    const WriteMark mark(writing_);
    if (given_up_ != nullptr && given_up_->load(std::memory_order_seq_cst) != 0) return Status::peer_lost;
    copy_bytes(destination, source, bytes);
    return Status::ok;
}

}  // namespace offpath::memory
