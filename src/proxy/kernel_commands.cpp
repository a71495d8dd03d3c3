// Session's part of kernels: which clients may run them, and the commands for them.
#include "base/log.h"
#include "proxy/kernel_places.h"
#include "proxy/session.h"

#include <unistd.h>

namespace offpath::proxy {
namespace {

constinit trace::Name kernel_in_trace("kernel");

}  // namespace

// A kernel is code that runs on this system. A client of this system may run it as its own user. A client on
// another system may do so only if the daemon's options allow it, and only with libraries from the
// directories that they name.
bool Session::admit_kernel(Status& status, std::string& why) const {
    if (!kernel_settings_.enabled) {
        status = Status::unsupported;
        why = "this offpathd runs no kernels (--no-kernels)";
        return false;
    }
    if (remote() && kernel_settings_.remote_places.empty()) {
        status = Status::unsupported;
        why = "this offpathd runs no kernels of other systems (--allow-kernels)";
        return false;
    }
    if (!remote() && peer_.uid != geteuid()) {
        status = Status::access;
        why = fmt::format("this offpathd runs as user {} and loads kernels for that user only, not for {}",
                          geteuid(), peer_.uid);
        return false;
    }
    return true;
}

void Session::load_kernel(const control::LoadKernel& message) {
    Status status = Status::ok;
    std::string why;
    const auto answer = [this, id = message.id, named = message.path + ":" + message.symbol](
                            Status result, const std::string& text) {
        if (result == Status::ok)
            log::info("{}: kernel {} is {}", name_, id, named);
        else
            log::error(Code::kernel, "{}: kernel {} is refused: {}", name_, named, text);
        if (!ended_) reply(control::KernelReply{id, result, text});
    };
    if (!admit_kernel(status, why)) return answer(status, why);
    control::LoadKernel kernel = message;
    if (remote()) {
        status = find_kernel_library(kernel_settings_.remote_places, message.path, kernel.path, why);
        if (status != Status::ok) return answer(status, why);
    }
    if (kernels_ == nullptr) {
        kernel_host::HostConfig config = remote() ? kernel_settings_.remote_host : kernel_settings_.host;
        if (!take_account(remote() ? kernel_settings_.accounts.get() : nullptr, job_, config, why))
            return answer(Status::unavailable, why);
        kernels_ = std::make_unique<KernelStreams>(config, kernel_settings_.seconds, clock_, epoll_, *memory_,
                                                   name_, [this](const control::Message& text) {
                                                       if (!ended_) reply(text);
                                                   });
        engine_.use_kernels(*session_, *kernels_);
    }
    if (status = kernels_->load(kernel, answer); status != Status::ok)
        answer(status, "too many kernels, or the number of another one");
}

void Session::answer_about_texts(const control::KernelTextsAsked& message) {
    if (kernels_ == nullptr)
        reply(message);
    else
        kernels_->asked(message);
}

bool Session::check_kernel(std::uint64_t kernel) {
    if (kernels_ != nullptr && kernels_->knows(kernel)) return true;
    problem_ = fmt::format("a command for kernel {}, which is not loaded", kernel);
    return false;
}

bool Session::execute(const control::Compute& command) {
    return check_kernel(command.kernel) && perform(command.completion, [&](ClientOperation& operation) {
               std::vector<engine::KernelBuffer> buffers;
               note_begin(operation, kernel_in_trace, 0);
               for (std::size_t i = 0; i < command.buffers.size(); ++i) {
                   const control::KernelBuffer buffer = command.buffers[i];
                   buffers.push_back({to_range(buffer.range), buffer.access});
                   if (!pin(operation, buffers.back().range)) return Status::access;
               }
               return kernels_->run(command.kernel, buffers, command.arguments, &operation);
           });
}

bool Session::execute(const control::UnloadKernel& command) {
    if (!check_kernel(command.kernel)) return false;
    kernels_->unload(command.kernel);
    return true;
}

}  // namespace offpath::proxy
