// Sessions that hold as much as a client may have, each up to another limit (docs/security.md). They keep it
// until they end. Threads: one.
#pragma once

#include "session.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace strangers {

class GreedySessions {
  public:
    // Throws std::runtime_error if a session does not get what it may have.
    void fill(const Target& target);
    // How much each session holds, by the name of the limit.
    const nlohmann::ordered_json& held() const { return held_; }

  private:
    void hold(const Target& target, const char* name, std::uint32_t job_ranks,
              const std::function<std::size_t(Session&)>& take);

    std::vector<std::unique_ptr<Session>> sessions_;
    nlohmann::ordered_json held_;
};

}  // namespace strangers
