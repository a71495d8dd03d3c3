// The format of a dump, which the file's name determines.
#pragma once

#include <optional>
#include <string_view>

namespace minimd {

enum class DumpFormat { xyz, lammps };

constexpr std::optional<DumpFormat> dump_format_of(std::string_view path) {
    if (path.ends_with(".xyz")) return DumpFormat::xyz;
    if (path.ends_with(".lammpstrj")) return DumpFormat::lammps;
    return std::nullopt;
}

}  // namespace minimd
