// A pair of ranks that exchange messages by offpath's basic primitives: the devices match and move the
// messages, and the hosts wait. Both ranks call the same functions in the same order.
//
// Owns its context and buffers; one thread.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace primitives {

enum class Memory { heap, offpath };

class Pair {
  public:
    // Throws std::runtime_error with the call that failed, or NoDevice if there is no daemon.
    Pair(Memory memory, std::size_t largest);
    ~Pair();
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    bool first() const { return rank_ == 0; }
    // How the device reaches the messages: "map", "cma", "staged", "xgvmi".
    std::string back_end() const;

    // Seconds of `iterations` round trips with `bytes` bytes each way.
    double ping_pong(std::size_t bytes, long iterations);
    // Seconds in which rank 0 sends `iterations` windows of `window` messages; the other rank answers each
    // window.
    double stream(std::size_t bytes, int window, long iterations);
    // One round trip whose data are checked. The result is the same on both ranks.
    bool verified(std::size_t bytes);

    // Gives rank 0's value to both ranks.
    double agreed(double value);

  private:
    void send(const void* data, std::size_t bytes);
    void receive(void* data, std::size_t bytes);
    void round_trip(std::size_t bytes);

    Memory memory_;
    std::size_t largest_;
    offpath_context_h context_ = nullptr;
    offpath_team_h team_ = nullptr;
    std::uint32_t rank_ = 0, peer_ = 0;
    unsigned char *out_ = nullptr, *in_ = nullptr;
};

struct NoDevice {};

}  // namespace primitives
