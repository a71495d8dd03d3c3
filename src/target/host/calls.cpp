#include "target/host/calls.h"

#include "target/records.h"

#include <ffi.h>
#include <fmt/format.h>

#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::target {
namespace {

// libffi's description of a function with a given number of arguments.
struct Shape {
    ffi_cif cif;
    std::vector<ffi_type*> types;
};

// Each thread keeps shapes of its own, because calls are frequent.
ffi_cif* shape_of(std::size_t count) {
    thread_local std::unordered_map<std::size_t, std::unique_ptr<Shape>> shapes;
    auto& shape = shapes[count];
    if (shape == nullptr) {
        auto made = std::make_unique<Shape>();
        made->types.assign(count, &ffi_type_uint64);
        if (ffi_prep_cif(&made->cif, FFI_DEFAULT_ABI, static_cast<unsigned>(count), &ffi_type_void,
                         made->types.data()) != FFI_OK)
            return nullptr;
        shape = std::move(made);
    }
    return &shape->cif;
}

}  // namespace

bool call_function(std::uint64_t function, std::span<std::uint64_t> arguments, std::string& problem) {
    ffi_cif* const cif = arguments.size() <= max_arguments ? shape_of(arguments.size()) : nullptr;
    if (cif == nullptr) {
        problem =
            fmt::format("a call with {} arguments; at most {} are accepted", arguments.size(), max_arguments);
        return false;
    }
    void* pointers[max_arguments + 1];
    for (std::size_t i = 0; i < arguments.size(); ++i)
        pointers[i] = &arguments[i];
    try {
        ffi_call(cif, reinterpret_cast<void (*)()>(function), nullptr, pointers);
    } catch (const std::exception& error) {
        problem = fmt::format("an exception left it: {}", error.what());
        return false;
    } catch (...) {
        problem = "an exception left it";
        return false;
    }
    return true;
}

}  // namespace offpath::target
