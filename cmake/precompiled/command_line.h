// CLI11, without optimization: a program reads its command line once, and compiling the library costs each
// program several seconds.
#pragma once

#include <cmath>
#include <exception>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <locale>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#ifdef __OPTIMIZE__
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("O0")
#include <CLI/CLI.hpp>
#pragma GCC pop_options
#endif
#endif

#include <CLI/CLI.hpp>
