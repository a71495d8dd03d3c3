// A line over TCP. Ownership: it owns the connection. Sleepers wait in epoll for one event. The connection is
// armed while no thread attends it. Its end is found by reading and writing. If nothing is
// being sent, the system finds a network that has gone silent within silence_s.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "target/line.h"

#include <atomic>
#include <memory>

namespace offpath::target {

class TcpLine final : public Line {
  public:
    static constexpr int silence_s = 7;
    // Takes a connected socket and makes it non-blocking. system: no descriptors.
    static Status open(FileDescriptor socket, std::unique_ptr<TcpLine>& line);

    std::size_t write(std::span<const std::byte> data) override;
    std::size_t read(std::span<std::byte> room) override;
    bool readable() override;
    void attend() override;
    void leave() override;
    void sleep(std::uint64_t limit_ns) override;
    void wake() override;
    bool drained() override;
    bool lost() override { return lost_.load(std::memory_order_relaxed); }
    std::string cause() const override;
    void hang_up() override;

  private:
    TcpLine(FileDescriptor socket, FileDescriptor epoll, FileDescriptor event)
        : socket_(std::move(socket)), epoll_(std::move(epoll)), event_(std::move(event)) {}
    void arm(std::uint32_t events);
    void lose(int error);

    FileDescriptor socket_, epoll_, event_;
    std::atomic<int> error_{0};
    std::atomic<bool> lost_{false}, wants_room_{false}, attended_{false};
};

}  // namespace offpath::target
