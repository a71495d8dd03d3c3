// A process attached to its own device: it starts a daemon, and if the machine has more than one core, the
// two run on separate cores.
//
// Owns the context. Only one may exist at a time, because its settings are environment variables.
#pragma once

#include <offpath/offpath.h>

#include <string>

namespace micro {

class Device {
  public:
    // `back_end` as in OFFPATH_BACK_END. Throws std::runtime_error that says what failed.
    explicit Device(const std::string& back_end);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    offpath_context_h context() const { return context_; }
    // The team of this process alone. Its messages to itself go through the device like any other.
    offpath_team_h team() const { return team_; }

  private:
    offpath_context_h context_ = nullptr;
    offpath_team_h team_ = nullptr;
};

// Throws, with the name of the call, if the status is not OFFPATH_OK.
void check(offpath_status_t status, const char* call);

// Prepares the environment for daemons and binds this process to its core. Starts no daemon yet.
void prepare(const std::string& program);
// Removes the session directory.
void clean_up();

}  // namespace micro
