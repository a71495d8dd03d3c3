// Asks a child process a question that may take for ever, such as what a network library finds out about its
// cards. Threads: the process must have one only, since the child is a fork of it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace offpath::proxy {

// Returns the answer, or nothing if there is none after `limit`, or if the child could not be made or ended
// without an answer. The child is gone then.
std::optional<std::string> answer_within(std::chrono::milliseconds limit,
                                         const std::function<std::string()>& question);

}  // namespace offpath::proxy
