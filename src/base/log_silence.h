// Silence: while one lives, what its thread would log is dropped. For whoever tries again after a call that
// also logs, and says in the end what came of it.
#pragma once

namespace offpath::log {

class Silence {
  public:
    Silence();
    ~Silence();
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
};

}  // namespace offpath::log
