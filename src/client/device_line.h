// DeviceLine: the connection of an attached process to its daemon, for rare messages: regions, the goodbye,
// the daemon's last message, what kernels print. Over TCP a separate thread keeps it alive and reads it while
// the program computes. Silence is then noticed, and the daemon does not consider this process dead. The
// thread wakes twice a second. Over a unix socket the kernel reports the end, and there is no thread until
// the process uses kernels.
//
// Ownership: the attachment. Threads: any; only one at a time may wait in receive().
#pragma once

#include "client/device_texts.h"
#include "control/message_socket.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

namespace offpath::client {

class DeviceLine {
  public:
    explicit DeviceLine(control::MessageSocket socket);
    ~DeviceLine();
    DeviceLine(const DeviceLine&) = delete;
    DeviceLine& operator=(const DeviceLine&) = delete;

    // Prints what kernels print from now on, with `device` in front of each line. No thread may be in
    // receive(). Throws std::system_error.
    void take_texts(const std::string& device);
    // Null before take_texts().
    DeviceTexts* texts() const;

    // retry: no room. peer_lost: the daemon is gone.
    Status send(const control::Message& message, std::span<const int> descriptors = {});
    // unavailable: nothing came in time. peer_lost: nothing will come any more.
    Status receive(int timeout_ms, control::Message& message, std::string& problem);
    // Whether the daemon has closed the connection, or has been silent for too long.
    bool closed() const;
    // Over TCP: for how long nothing was heard of the daemon. Else 0.
    std::uint64_t silent_ns() const;
    // Over a unix socket: a pidfd of the daemon's process; empty, with errno, if it has ended or is not
    // visible.
    FileDescriptor process() const;
    // Over a unix socket: whether the daemon's process has ended, with all its threads. Waits for that, up to
    // the timeout. False where its process is not visible.
    bool process_ended(int timeout_ms) const;
    // Waits until closed(), up to the timeout. Takes no message.
    bool wait_closed(int timeout_ms);
    // Why it is closed, as far as this side knows: "it died", "nothing was heard of it for 8 s".
    std::string why() const;

  private:
    void start();
    void run();
    bool take_messages();  // under the mutex; false: closed
    void close_with(std::string why);

    control::MessageSocket socket_;
    std::unique_ptr<DeviceTexts> texts_;
    std::atomic<bool> threaded_{false};
    // The rest is used with a thread only.
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<control::Message> messages_;
    std::string why_ = "it died";
    std::atomic<bool> closed_{false}, stop_{false};
    FileDescriptor stop_event_;
    std::thread thread_;
};

}  // namespace offpath::client
