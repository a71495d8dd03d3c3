// Reads settings from the environment and checks them. An error about an unreadable value names the variable,
// the value and what is accepted. Thread-safe as long as no thread calls setenv.
#pragma once

#include <cstdint>
#include <string>

namespace offpath::environment {

// These throw std::invalid_argument when the variable is set to something that is not accepted.
std::string text(const char* name, const std::string& otherwise);
std::uint64_t number(const char* name, std::uint64_t otherwise);
// Bytes with an optional suffix K, M or G (powers of 1024).
std::uint64_t bytes(const char* name, std::uint64_t otherwise);
// on/off, yes/no, true/false, 1/0.
bool flag(const char* name, bool otherwise);

std::uint64_t parse_bytes(const std::string& text, const std::string& what);

}  // namespace offpath::environment
