// Calls functions whose number of arguments is known only at run time. Every argument has eight bytes, as the
// compiler passes the arguments of target regions. Threads: any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace offpath::target {

// False, with `problem`: too many arguments, or an exception left the function.
bool call_function(std::uint64_t function, std::span<std::uint64_t> arguments, std::string& problem);

}  // namespace offpath::target
