// What to say of environment variables that look like offpath's and are none: a misspelt setting is otherwise
// silent. The build makes the list of those that something reads from the sources, which name them in quotes.
#pragma once

#include <string>
#include <vector>

namespace offpath::environment {

// One sentence for each variable of `set` ("NAME=VALUE", ended by a null pointer) that begins with OFFPATH_
// and that nothing reads, with the known name that is nearest to it where one is near. Those that begin with
// OFFPATH_TEST_ are the tests'.
std::vector<std::string> unknown_variables(const char* const* set);

// Of this process.
std::vector<std::string> unknown_variables();

}  // namespace offpath::environment
