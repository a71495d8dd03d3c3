// LinkClientChannel: the client's channel over a link. It collects commands until ring(), or until a message
// is full. The thread that progresses the link writes completions. Ownership: the attachment; it must end
// before its link. Threads: as ClientChannel says. take_batches() and on_*: the thread that progresses the
// link, one at a time.
#pragma once

#include "control/channel.h"
#include "control/ring.h"
#include "link/wire.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace offpath::link {

// The records of one message, in the order of posting.
struct Batch {
    std::uint64_t number = 0;
    std::vector<std::byte> bytes;
};

// What the channel needs of its link. Threads: any.
class LinkDriver {
  public:
    virtual ~LinkDriver() = default;
    // There are batches to send.
    virtual void kick() = 0;
    // The same as in ClientChannel.
    virtual bool begin_progress() = 0;
    virtual void progress() = 0;
    virtual void end_progress() = 0;
    virtual bool lost(std::string& why) = 0;
    // Ends the link. Afterwards it touches none of the program's memory.
    virtual void abandon() = 0;
    virtual void forget_channel() = 0;
    // A thread is about to sleep, or has slept.
    virtual void enter_wait() = 0;
    virtual void leave_wait() = 0;
    // The device broke the rules.
    virtual void broken(const char* why) = 0;
};

// Memory that the device writes itself (rings.h). Null: it writes nothing.
struct WrittenByDevice {
    control::CompletionEntry* table = nullptr;
    const std::atomic<std::uint64_t>* taken = nullptr;
};

class LinkClientChannel final : public control::ClientChannel {
  public:
    LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes,
                      const WrittenByDevice& written = {});
    ~LinkClientChannel() override { link_.forget_channel(); }

    Status post(const control::Command& command) override;
    bool ring() override;
    bool begin_progress() override { return link_.begin_progress(); }
    void progress() override { link_.progress(); }
    void end_progress() override { link_.end_progress(); }
    bool lost(std::string& why) override { return link_.lost(why); }
    void abandon() override { link_.abandon(); }

    // Takes the batches to send now, in order. The caller owns the vector and passes it again, so that its
    // memory is reused.
    void take_batches(std::vector<Batch>& batches);
    // False: the device broke the rules.
    bool on_completions(const Header& header, std::span<const std::byte> items);

  private:
    struct Words {
        Words(std::uint32_t completions, const WrittenByDevice& written)
            : own(written.table == nullptr ? new control::CompletionEntry[completions]() : nullptr),
              table(written.table == nullptr ? own.get() : written.table) {}
        std::unique_ptr<control::CompletionEntry[]> own;
        control::CompletionEntry* table;
        alignas(control::cache_line) std::atomic<std::uint32_t> sequence{0};
        alignas(control::cache_line) std::atomic<std::uint32_t> waiting{0};
    };
    LinkClientChannel(LinkDriver& link, const control::ChannelSizes& sizes, const WrittenByDevice& written,
                      std::unique_ptr<Words> words);
    void announce_wait() override { link_.enter_wait(); }
    void withdraw_wait() override { link_.leave_wait(); }
    void seal();
    std::uint64_t taken() const;

    LinkDriver& link_;
    const std::uint64_t room_;
    const std::atomic<std::uint64_t>* const taken_by_device_;
    std::unique_ptr<Words> words_;
    // Used by the posting thread only.
    Batch current_;
    std::uint64_t posted_ = 0;  // bytes
    // Bytes that the device has taken, according to its messages.
    alignas(control::cache_line) std::atomic<std::uint64_t> taken_{0};
    std::mutex mutex_;  // guards what follows; never held for long
    std::vector<Batch> sealed_;
    std::vector<std::vector<std::byte>> spare_;
};

}  // namespace offpath::link
