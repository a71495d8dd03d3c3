#include "json_fields.h"

#include <fmt/format.h>

#include <stdexcept>

namespace offpath::mpi::json_fields {

void refuse(const std::string& what) {
    throw std::invalid_argument(what);
}

const Json& member(const Json& object, const char* name, const std::string& where) {
    if (!object.is_object()) refuse(fmt::format("{} is no object", where));
    const auto found = object.find(name);
    if (found == object.end()) refuse(fmt::format("{} has no \"{}\"", where, name));
    return *found;
}

std::uint64_t whole(const Json& object, const char* name, std::uint64_t least, std::uint64_t most,
                    const std::string& where) {
    const Json& value = member(object, name, where);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > most) {
        refuse(fmt::format("{}: \"{}\" is {}; accepted are whole numbers from {} to {}", where, name,
                           value.dump(), least, most));
    }
    return value.get<std::uint64_t>();
}

double real(const Json& object, const char* name, double most, const std::string& where) {
    const Json& value = member(object, name, where);
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > most)
        refuse(fmt::format("{}: \"{}\" is {}; accepted are numbers from 0 to {:g}", where, name, value.dump(),
                           most));
    return value.get<double>();
}

std::string text(const Json& object, const char* name, const std::string& where) {
    const Json& value = member(object, name, where);
    if (!value.is_string())
        refuse(fmt::format("{}: \"{}\" is {}; accepted is a text", where, name, value.dump()));
    return value.get<std::string>();
}

Op operation(const Json& row, const std::string& where) {
    const Json& name = member(row, "op", where);
    std::string known;
    for (std::size_t i = 0; i < op_count; ++i) {
        const Op op = static_cast<Op>(i);
        if (name.is_string() && name.get<std::string>() == traits(op).key) return op;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", traits(op).key);
    }
    refuse(fmt::format("{}: \"op\" is {}; accepted are {}", where, name.dump(), known));
}

Json parse(const std::string& text) {
    try {
        return Json::parse(text);
    } catch (const Json::exception& error) {
        refuse(fmt::format("it is no JSON: {}", error.what()));
    }
}

}  // namespace offpath::mpi::json_fields
