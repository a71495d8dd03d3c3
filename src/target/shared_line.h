// A line over shared memory: one ring of bytes for each direction, in a memory file that the daemon makes,
// and a unix socket that tells when the other side has ended. Ownership: it owns its mapping and its socket.
//
// Pairs: the writer stores `tail` with release and the reader loads it with acquire. For `head` it is the
// other way round. Sleeping: a sleeper counts itself, then looks at the rings once more. A side that has
// moved an index passes a seq_cst fence, then looks at the other side's sleepers. At least one of them sees
// the other.
#pragma once

#include "base/file_descriptor.h"
#include "base/status.h"
#include "memory/file.h"
#include "target/line.h"

#include <atomic>
#include <memory>

namespace offpath::target {

class SharedLine final : public Line {
  public:
    enum class Side : std::uint8_t { program, host };
    static constexpr std::size_t ring_bytes = 1 << 20;

    // Makes the memory file of a line.
    static Status make_file(memory::File& file);
    // `file` is one that make_file made, checked by the caller; `socket` is connected to the other side.
    static Status open(Side side, const memory::File& file, FileDescriptor socket,
                       std::unique_ptr<SharedLine>& line);

    std::size_t write(std::span<const std::byte> data) override;
    std::size_t read(std::span<std::byte> room) override;
    bool readable() override;
    void attend() override;
    void leave() override;
    void sleep(std::uint64_t limit_ns) override;
    void wake() override;
    bool drained() override;
    bool lost() override;
    void hang_up() override;
    JointArea* joint() override { return &joint_; }

    // The size of the file.
    static std::size_t file_bytes();

  private:
    struct Ring {
        alignas(64) std::atomic<std::uint64_t> head;  // read up to here
        alignas(64) std::atomic<std::uint64_t> tail;  // written up to here
        alignas(64) std::byte bytes[ring_bytes];
    };
    struct Waiting {
        alignas(64) std::atomic<std::uint32_t> bell;
        std::atomic<std::uint32_t> sleepers, attended, wants_room;
    };
    struct Shared {
        Waiting waiting[2];  // by side
        Ring rings[2];       // by writing side
        JointArea joint;
    };

    SharedLine(Side side, memory::Mapping mapping, FileDescriptor socket);
    void ring(Waiting& side, bool room);

    memory::Mapping mapping_;
    FileDescriptor socket_;
    Waiting &mine_, &other_;
    Ring &out_, &in_;
    JointArea& joint_;
    std::atomic<bool> lost_{false};
    std::atomic<std::uint64_t> looked_ns_{0};
};

}  // namespace offpath::target
