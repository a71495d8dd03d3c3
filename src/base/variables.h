// Warnings about environment variables that start with OFFPATH_ but that nothing reads. Without them a
// misspelt setting would have no effect and no message. The build extracts the list of known variables from
// the sources, which name them in quotes.
#pragma once

#include <string>
#include <vector>

namespace offpath::environment {

// Returns one sentence for each variable in `set` that starts with OFFPATH_ and that nothing reads. The
// sentence suggests a known name when one is close. `set` holds "NAME=VALUE" strings and ends with a null
// pointer. Names that start with OFFPATH_TEST_ belong to the tests and are skipped.
std::vector<std::string> unknown_variables(const char* const* set);

// The same for the environment of this process.
std::vector<std::string> unknown_variables();

}  // namespace offpath::environment
