// Silence: while such an object lives, lines that its thread would log are dropped. It is for a caller that
// retries a call which logs its failures; that caller logs the final outcome itself.
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
