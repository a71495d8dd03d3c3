// The text of an error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/mpi_program.h"

namespace minimd {

// Returns the message of the UsageError that `call` throws, or an empty string if it throws none.
template <typename Call>
std::string usage_error(Call&& call) {
    try {
        call();
    } catch (const mpi_support::UsageError& error) {
        return error.what();
    }
    return "";
}

}  // namespace minimd
