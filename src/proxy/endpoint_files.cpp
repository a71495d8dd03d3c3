#include "proxy/endpoint_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace offpath::proxy {
namespace {

std::string read_start(int fd) {
    char text[32] = "";
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    std::string result(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!result.empty() && result.back() == '\n')
        result.pop_back();
    return result;
}

}  // namespace

Status EndpointFiles::create(const std::string& directory, std::string& problem) {
    if (Status status = control::own_directory(directory, problem); status != Status::ok) return status;
    name(directory);
    if (Status status = lock(problem); status != Status::ok) return status;
    // We hold the lock, so the daemon that bound this socket is gone.
    unlink(socket_path_.c_str());
    unlink(port_path_.c_str());
    if (Status status = control::listen_at(socket_path_, listener_, problem); status != Status::ok) {
        unlink(pid_path_.c_str());
        pid_file_.reset();
        return status;
    }
    return Status::ok;
}

Status EndpointFiles::lock(std::string& problem) {
    for (int attempt = 0; attempt < 16; ++attempt) {
        FileDescriptor file(open(pid_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) {
            problem = fmt::format("{}: {}", pid_path_, std::strerror(errno));
            return Status::system;
        }
        if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            problem =
                fmt::format("another offpathd (pid {}) serves {}; stop it first, or choose another --dir",
                            read_start(file.get()), socket_path_);
            return Status::unavailable;
        }
        // A daemon that ended just now may have removed the file between our open and our lock.
        struct stat opened {
        }, named{};
        if (fstat(file.get(), &opened) != 0 || stat(pid_path_.c_str(), &named) != 0 ||
            opened.st_ino != named.st_ino || opened.st_dev != named.st_dev)
            continue;
        if (Status status = write_pid(file.get(), pid_path_, problem); status != Status::ok) return status;
        pid_file_ = std::move(file);
        return Status::ok;
    }
    problem = fmt::format("{} keeps changing", pid_path_);
    return Status::system;
}

void EndpointFiles::name(const std::string& directory) {
    socket_path_ = control::socket_path(directory);
    pid_path_ = control::pid_path(directory);
    port_path_ = control::port_path(directory);
}

Status EndpointFiles::write_pid(int file, const std::string& path, std::string& problem) {
    const std::string pid = fmt::format("{}\n", getpid());
    if (ftruncate(file, 0) == 0 &&
        pwrite(file, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size()))
        return Status::ok;
    problem = fmt::format("{}: {}", path, std::strerror(errno));
    return Status::system;
}

Status EndpointFiles::replace(const std::string& directory, pid_t& predecessor, std::string& problem) {
    predecessor = 0;
    if (Status status = control::own_directory(directory, problem); status != Status::ok) return status;
    name(directory);
    {
        FileDescriptor old(open(pid_path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (!old || flock(old.get(), LOCK_EX | LOCK_NB) == 0) {
            // Nobody serves here. The lock, if there is one, ends with `old`.
            old.reset();
            return create(directory, problem);
        }
        predecessor = static_cast<pid_t>(std::strtol(read_start(old.get()).c_str(), nullptr, 10));
    }
    const std::string pid_path = pid_path_ + ".new", socket_path = socket_path_ + ".new";
    FileDescriptor file(open(pid_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        problem =
            fmt::format("{}: {}; does another offpathd take this place?", pid_path, std::strerror(errno));
        return Status::unavailable;
    }
    if (Status status = write_pid(file.get(), pid_path, problem); status != Status::ok) return status;
    unlink(socket_path.c_str());
    if (Status status = control::listen_at(socket_path, listener_, problem); status != Status::ok) {
        unlink(pid_path.c_str());
        return status;
    }
    if (rename(pid_path.c_str(), pid_path_.c_str()) != 0 ||
        rename(socket_path.c_str(), socket_path_.c_str()) != 0) {
        problem = fmt::format("{}: {}", socket_path_, std::strerror(errno));
        unlink(pid_path.c_str());
        unlink(socket_path.c_str());
        listener_.reset();
        return Status::system;
    }
    pid_file_ = std::move(file);
    return Status::ok;
}

// Writes the file whole or not at all, for the processes that wait for it.
Status EndpointFiles::write_port(std::uint16_t port, std::string& problem) {
    const std::string made = port_path_ + ".new", text = fmt::format("{}\n", port);
    unlink(made.c_str());
    FileDescriptor file(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        rename(made.c_str(), port_path_.c_str()) != 0) {
        problem = fmt::format("{}: {}", port_path_, std::strerror(errno));
        return Status::system;
    }
    return Status::ok;
}

bool EndpointFiles::are_ours() const {
    struct stat opened {
    }, named{};
    return fstat(pid_file_.get(), &opened) == 0 && stat(pid_path_.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void EndpointFiles::remove() {
    if (!pid_file_) return;
    const bool ours = are_ours();
    if (ours) {
        unlink(socket_path_.c_str());
        unlink(port_path_.c_str());
    }
    listener_.reset();
    if (ours) unlink(pid_path_.c_str());
    pid_file_.reset();
}

}  // namespace offpath::proxy
