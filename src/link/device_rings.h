// DeviceRings: the device's half of rings.h for one link. It puts completions into the host's window; each
// entry's word follows once the rest of the entry has arrived. Ownership: the link's peer. Threads: the
// proxy's; `ring` and `failed` are called inside the OneSided's progress, or inside put().
#pragma once

#include "link/wire.h"
#include "transport/one_sided.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace offpath::link {

class DeviceRings : Completion {
  public:
    struct Events {
        std::function<void()> ring;    // words are visible, and threads of the host sleep
        std::function<void()> failed;  // puts no longer arrive
    };
    DeviceRings(std::unique_ptr<transport::Window> own, std::unique_ptr<transport::RemoteWindow> host,
                Events events);
    DeviceRings(const DeviceRings&) = delete;
    DeviceRings& operator=(const DeviceRings&) = delete;

    // Puts the first word, by which both sides learn that puts arrive.
    void start();
    std::vector<std::byte> key() const { return own_->key(); }
    // Whether completions should be put: puts arrive, and no thread of the host sleeps.
    bool ready() const { return open_ && !failed_ && !host_sleeps(); }
    // `items` are entries as in messages, for slots of the host's table. `taken` is as in the message header.
    void put(std::span<const std::byte> items, std::uint64_t taken);

  private:
    bool host_sleeps() const;
    void go_on();
    Status put_rest(const CompletionItem& item);
    Status put_word(const CompletionItem& item);
    Status put_taken();
    // Whether the flush completed at once.
    bool flush();
    void settle();
    void fail();
    static void on_flushed(Completion* self, Status status);

    std::unique_ptr<transport::Window> own_;
    std::unique_ptr<transport::RemoteWindow> host_;
    Events events_;
    std::vector<CompletionItem> queue_;   // nothing of these has been put
    std::vector<CompletionItem> placed_;  // everything but their words has been put
    std::uint64_t taken_ = 0, told_ = 0;
    bool open_ = false, failed_ = false;
    bool flushing_ = false;
    bool words_ = false;  // the flush in progress covers words
};

}  // namespace offpath::link
