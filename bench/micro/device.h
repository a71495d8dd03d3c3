// A process attached to a device of its own: the daemon is started for it, and the two have a core each where
// the machine has more than one.
//
// Owns the context; one may exist at a time, because its settings are environment variables.
#pragma once

#include <offpath/offpath.h>

#include <string>

namespace micro {

class Device {
  public:
    // `back_end` as OFFPATH_BACK_END takes it. Throws std::runtime_error with what failed.
    explicit Device(const std::string& back_end);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    offpath_context_h context() const { return context_; }
    // The team of this process alone: what it sends to itself goes through the device like any other message.
    offpath_team_h team() const { return team_; }

  private:
    offpath_context_h context_ = nullptr;
    offpath_team_h team_ = nullptr;
};

// Throws with the name of the call unless the status is OFFPATH_OK.
void check(offpath_status_t status, const char* call);

// Starts nothing yet, but prepares the environment for daemons and moves this process to its core.
void prepare(const std::string& program);
// Removes the session directory.
void clean_up();

}  // namespace micro
