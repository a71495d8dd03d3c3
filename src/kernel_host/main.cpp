// offpath-kernel-host: runs the kernels of one client (records.h). A proxy starts it, as
//   offpath-kernel-host PARENT [CPU,CPU,...] [UID:GID] own|any
// with its socket, the shared words and the pipes for its output at given descriptors. It has one thread;
// kernels may start more.
#include "base/passed_descriptors.h"
#include "kernel_host/host_process.h"
#include "kernel_host/records.h"
#include "memory/file.h"

#include <offpath/compute.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include <dlfcn.h>
#include <link.h>
#include <sys/socket.h>
#include <unistd.h>

namespace offpath::kernel_host {
namespace {

// Whether the library itself defines the symbol. dlsym also searches the libraries that it depends on.
bool is_of(void* library, void* symbol) {
    link_map *named = nullptr, *found = nullptr;
    Dl_info info{};
    return dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&named)) == 0 &&
           dladdr1(symbol, &info, reinterpret_cast<void**>(&found), RTLD_DL_LINKMAP) != 0 && named == found;
}

class Host {
  public:
    Host(memory::Mapping shared, bool own_symbols) : shared_(std::move(shared)), own_symbols_(own_symbols) {}
    // Returns when the proxy closes the connection.
    int serve();

  private:
    struct Kernel {
        void* library = nullptr;
        offpath_kernel_fn function = nullptr;
    };

    bool next(Request& request, std::vector<memory::File>& files);
    void handle(const Load& load);
    void handle(const Unload& unload);
    void handle(const Unmap& unmap) { regions_.erase(unmap.region); }
    void handle(const Run& run);
    Answer run(const Run& run);
    void answer(const Answer& answer);
    Status map(const Region& region, const memory::File& file);

    memory::Mapping shared_;
    const bool own_symbols_;
    std::map<std::uint64_t, Kernel> kernels_;
    std::map<std::uint64_t, memory::Mapping> regions_;
    std::vector<memory::File> files_;  // of the current record
    alignas(64) std::byte arguments_[OFFPATH_KERNEL_ARGUMENT_BYTES];
};

bool Host::next(Request& request, std::vector<memory::File>& files) {
    std::byte record[max_record_bytes];
    iovec part{record, sizeof record};
    DescriptorRoom<max_regions> room;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    accept_descriptors(message, room);
    ssize_t got;
    do {
        got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    files.clear();
    take_descriptors(message, [&](int descriptor) { files.emplace_back(descriptor); });
    return (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0 &&
           decode(std::span(record, static_cast<std::size_t>(got)), request);
}

int Host::serve() {
    Request request;
    while (next(request, files_)) {
        std::visit([this](const auto& r) { handle(r); }, request);
        files_.clear();
    }
    return 0;
}

void Host::handle(const Load& load) {
    Kernel kernel;
    const char* why = nullptr;
    kernel.library = dlopen(load.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (kernel.library == nullptr) {
        why = dlerror();
    } else {
        dlerror();
        kernel.function = reinterpret_cast<offpath_kernel_fn>(dlsym(kernel.library, load.symbol.c_str()));
        if (kernel.function == nullptr) {
            why = dlerror();
        } else if (own_symbols_ && !is_of(kernel.library, reinterpret_cast<void*>(kernel.function))) {
            why = "the symbol is of another library";
            kernel.function = nullptr;
        }
    }
    if (kernel.function != nullptr) {
        kernels_[load.kernel] = kernel;
        return answer({load.number, Status::ok, {}});
    }
    Answer refusal{load.number, Status::invalid, why != nullptr ? why : "the symbol has no address"};
    if (kernel.library != nullptr) dlclose(kernel.library);
    answer(refusal);
}

void Host::handle(const Unload& unload) {
    const auto found = kernels_.find(unload.kernel);
    if (found == kernels_.end()) return;
    dlclose(found->second.library);
    kernels_.erase(found);
}

Status Host::map(const Region& region, const memory::File& file) {
    regions_.erase(region.id);
    memory::Mapping mapping;
    if (Status status = memory::Mapping::map(file.get(), region.bytes, mapping); status != Status::ok)
        return status;
    mapping.advise_huge_pages();
    mapping.populate_if_allocated(file.get());
    regions_[region.id] = std::move(mapping);
    return Status::ok;
}

void Host::handle(const Run& record) {
    const Answer result = run(record);
    std::fflush(stdout);
    answer(result);
}

Answer Host::run(const Run& record) {
    const auto fail = [&](Status status, std::string text) {
        return Answer{record.number, status, std::move(text)};
    };
    if (files_.size() != record.regions.size()) return fail(Status::system, "descriptors were lost");
    for (std::size_t i = 0; i < record.regions.size(); ++i)
        if (Status status = map(record.regions[i], files_[i]); status != Status::ok)
            return fail(status, "memory cannot be mapped");
    const auto kernel = kernels_.find(record.kernel);
    if (kernel == kernels_.end() || record.buffers.size() > OFFPATH_KERNEL_BUFFERS ||
        record.arguments.size() > sizeof arguments_)
        return fail(Status::invalid, "no such kernel, or too much for it");
    void* pointers[OFFPATH_KERNEL_BUFFERS] = {};
    std::size_t bytes[OFFPATH_KERNEL_BUFFERS] = {};
    for (std::size_t i = 0; i < record.buffers.size(); ++i) {
        const Buffer& buffer = record.buffers[i];
        if (buffer.bytes == 0) continue;
        const auto region = regions_.find(buffer.region);
        if (region == regions_.end() || buffer.offset > region->second.bytes() ||
            buffer.bytes > region->second.bytes() - buffer.offset)
            return fail(Status::access, "a buffer outside its memory");
        pointers[i] = region->second.data() + buffer.offset;
        bytes[i] = buffer.bytes;
    }
    if (!record.arguments.empty()) std::memcpy(arguments_, record.arguments.data(), record.arguments.size());
    int result;
    try {
        result = kernel->second.function(arguments_, record.arguments.size(), pointers, bytes,
                                         record.buffers.size());
    } catch (const std::exception& error) {
        return fail(Status::system, fmt::format("an exception left it: {}", error.what()));
    } catch (...) {
        return fail(Status::system, "an exception left it");
    }
    if (result == 0) return fail(Status::ok, {});
    const bool known = result < 0 && result >= OFFPATH_ERR_SYSTEM;
    return fail(known ? static_cast<Status>(result) : Status::system, fmt::format("it returned {}", result));
}

void Host::answer(const Answer& answer) {
    const std::vector<std::byte> record = encode(answer);
    while (send(socket_fd, record.data(), record.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
    reinterpret_cast<Shared*>(shared_.data())->answers.fetch_add(1, std::memory_order_release);
}

}  // namespace
}  // namespace offpath::kernel_host

// NOLINTNEXTLINE(bugprone-exception-escape): an exception ends this process, and its proxy reports that
int main(int argc, char** argv) {
    using namespace offpath;
    if (argc != 5) {
        std::fprintf(stderr, "offpath-kernel-host is started by offpathd [OFP-0106]\n");
        return 2;
    }
    memory::Mapping shared;
    if (memory::Mapping::map(kernel_host::shared_fd, sizeof(kernel_host::Shared), shared) != Status::ok)
        return 1;
    kernel_host::Watched watched;
    watched.stops = &reinterpret_cast<kernel_host::Shared*>(shared.data())->stops;
    if (!kernel_host::settle_host(argv, watched)) return 1;
    close(kernel_host::shared_fd);
    // What kernels print goes to the program.
    for (const auto& [pipe, descriptor] : {std::pair(kernel_host::output_fd, STDOUT_FILENO),
                                           std::pair(kernel_host::error_output_fd, STDERR_FILENO)}) {
        if (dup2(pipe, descriptor) < 0) return 1;
        close(pipe);
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    return kernel_host::Host(std::move(shared), std::strcmp(argv[4], "own") == 0).serve();
}
