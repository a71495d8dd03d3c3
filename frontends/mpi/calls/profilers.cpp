#include "profilers.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/loaded_object.h"

namespace offpath::mpi {
namespace {

using Addresses = std::unordered_map<std::string_view, std::uint64_t>;

// Where each call of MPI leads that the front end defines, in C and in Fortran.
struct Calls {
    LoadedObject us;
    Addresses ours;
    Addresses first;                      // that would be called if the front end were not there
    std::vector<LoadedObject> profilers;  // that define at least one of `first`
    std::string unwritten;                // an object with a slot that could not be changed
    std::string too_late;                 // a library that wraps calls without PMPI, and comes after us
};

bool is_call(std::string_view name) {
    return name.starts_with("MPI_") || name.starts_with("MPIX_") || name.starts_with("mpi_");
}

bool is_profiling_call(std::string_view name) {
    return (name.starts_with("P") || name.starts_with("p")) && is_call(name.substr(1));
}

bool is_of_offpath(const LoadedObject& object) {
    return std::filesystem::path(object.path()).filename().native().starts_with("liboffpath-");
}

// An MPI library defines PMPI_X beside MPI_X, or pmpi_x.
bool is_mpi_library(const LoadedObject& object) {
    bool found = false;
    object.functions([&](std::string_view name, std::uint64_t) { found = found || is_profiling_call(name); });
    return found;
}

bool defines_one_of(const LoadedObject& object, const Addresses& ours) {
    bool found = false;
    object.functions([&](std::string_view name, std::uint64_t) {
        found = found || (is_call(name) && ours.contains(name));
    });
    return found;
}

bool calls_mpi_by_pmpi(const LoadedObject& object) {
    bool found = false;
    object.redirect([&](std::string_view name, std::uint64_t) -> std::uint64_t {
        found = found || is_profiling_call(name);
        return 0;
    });
    return found;
}

Calls find_calls(const std::vector<LoadedObject>& objects) {
    Calls calls;
    const void* const here = reinterpret_cast<const void*>(&find_calls);
    for (const LoadedObject& object : objects)
        if (object.contains(here)) {
            calls.us = object;
            object.functions([&](std::string_view name, std::uint64_t address) {
                if (is_call(name)) calls.ours.emplace(name, address);
            });
        }
    bool later = false;
    for (const LoadedObject& object : objects) {
        later = later || object.contains(here);
        if (object.contains(here) || is_of_offpath(object) || !defines_one_of(object, calls.ours) ||
            is_mpi_library(object))
            continue;
        // It finds the next function of the same name by itself. That is ours only if it comes before us.
        if (!calls_mpi_by_pmpi(object)) {
            if (later) calls.too_late = object.path();
            continue;
        }
        object.functions([&](std::string_view name, std::uint64_t address) {
            if (calls.ours.contains(name)) calls.first.emplace(name, address);
        });
        calls.profilers.push_back(object);
    }
    return calls;
}

bool is_profiler(const Calls& calls, const LoadedObject& object) {
    return std::ranges::any_of(calls.profilers,
                               [&](const LoadedObject& each) { return each.path() == object.path(); });
}

std::uint64_t address_in(const Addresses& addresses, std::string_view name) {
    const auto found = addresses.find(name);
    return found == addresses.end() ? 0 : found->second;
}

// Of the objects that the process starts with. What is opened later is behind the front end for the loader,
// too.
Calls& calls_of_start() {
    static Calls calls = find_calls(LoadedObject::all());
    return calls;
}

// Puts profilers before the front end in all objects that are loaded now. Returns whether that has changed
// where calls of the object that contains `caller` lead.
bool put_profilers_first(const void* caller) {
    Calls& calls = calls_of_start();
    bool caller_changed = false;
    if (calls.profilers.empty()) return false;
    for (const LoadedObject& object : LoadedObject::all()) {
        if (object.path() == calls.us.path() || is_of_offpath(object)) continue;
        const bool profiles = is_profiler(calls, object);
        const LoadedObject::Redirected done =
            object.redirect([&](std::string_view name, std::uint64_t) -> std::uint64_t {
                if (profiles && is_profiling_call(name)) return address_in(calls.ours, name.substr(1));
                return address_in(calls.first, name);
            });
        if (done.failed) calls.unwritten = object.path();
        caller_changed = caller_changed || (done.changed && object.contains(caller));
    }
    return caller_changed;
}

// Before the constructors of the program and its libraries, which may call MPI.
__attribute__((constructor)) void put_profilers_first_at_start() {
    (void)put_profilers_first(nullptr);
}

}  // namespace

void* profiler_passed_by(const char* name, const void* caller) {
    if (!put_profilers_first(caller)) return nullptr;
    const std::uint64_t first = address_in(calls_of_start().first, name);
    return reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
}

std::string why_profilers_are_not_first() {
    const Calls& calls = calls_of_start();
    if (!calls.unwritten.empty())
        return fmt::format("{} calls MPI past the profiler, because its table of functions cannot be written",
                           calls.unwritten);
    if (!calls.too_late.empty())
        return fmt::format(
            "{} does not see the program's calls: it wraps them without PMPI, and is loaded after "
            "offpath",
            calls.too_late);
    return {};
}

}  // namespace offpath::mpi
