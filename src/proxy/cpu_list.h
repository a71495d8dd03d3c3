// Lists of CPUs as people write them: "3", "0-2,5", "all".
#pragma once

#include <string>
#include <vector>

namespace offpath::proxy {

// Empty for "all". Throws std::invalid_argument; its text says what is accepted.
std::vector<int> parse_cpu_list(const std::string& text);
// Lets this process run on all CPUs of the list (empty: on all CPUs), regardless of what it inherited.
void use_cpus(const std::vector<int>& cpus);

}  // namespace offpath::proxy
