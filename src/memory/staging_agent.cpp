#include "memory/staging_agent.h"

#include "base/log.h"
#include "base/own_thread.h"
#include "base/scheduling.h"
#include "memory/checked_memory.h"
#include "memory/staging_area.h"

#include <system_error>
#include <thread>

#include <pthread.h>
#include <sys/socket.h>

namespace offpath::memory {

namespace {

// Never uses memcpy, so a buffer that is not mapped causes an error and not a signal.
Status serve(const StagingArea& area, int file, const StagingRequest& request) {
    if (request.slot >= area.slots() || request.bytes > area.slot_bytes()) return Status::protocol;
    const bool to_device = request.direction == StagingDirection::to_device;
    const std::uint64_t place = area.slot_offset(request.slot);
    const Status status = to_device
                              ? CheckedMemory::to_file(request.host_address, file, place, request.bytes)
                              : CheckedMemory::from_file(file, place, request.host_address, request.bytes);
    if (status != Status::ok)
        log::warn(Code::host_memory, "staging: {} {} bytes at {:#x}: {}", to_device ? "reading" : "writing",
                  request.bytes, request.host_address, to_string(status));
    return status;
}

class Agent final : public StagingAgent {
  public:
    Agent(StagingArea area, StagingFiles files) : area_(std::move(area)), files_(std::move(files)) {
        thread_ = start_own_thread([this] { run(); });
    }

    ~Agent() override {
        stop_.store(true, std::memory_order_release);
        shutdown(files_.bell.get(), SHUT_RDWR);
        thread_.join();
    }

    std::uint64_t served() const override { return served_.load(std::memory_order_acquire); }

  private:
    void run() {
        pthread_setname_np(pthread_self(), "offpath-agent");
        ask_for_short_slices();
        while (!stop_.load(std::memory_order_acquire)) {
            StagingRequest request;
            if (area_.take(request)) {
                const Status status = serve(area_, files_.area.get(), request);
                served_.fetch_add(1, std::memory_order_release);
                area_.post(StagingAnswer{request.slot, 0, static_cast<std::int32_t>(status)});
                if (area_.proxy_must_be_woken()) ring(files_.bell.get());
            } else if (area_.agent_rests() && !wait_for_ring(files_.bell.get())) {
                return;
            }
        }
    }

    StagingArea area_;
    StagingFiles files_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> served_{0};
    std::thread thread_;
};

}  // namespace

Status StagingAgent::start(StagingFiles files, std::unique_ptr<StagingAgent>& agent, std::string& problem) {
    StagingArea area;
    if (const Status status = StagingArea::open(files.area.get(), area, problem); status != Status::ok)
        return status;
    try {
        agent = std::make_unique<Agent>(std::move(area), std::move(files));
    } catch (const std::system_error& error) {
        problem = fmt::format("the staging agent's thread: {}", error.what());
        return Status::system;
    }
    return Status::ok;
}

}  // namespace offpath::memory
