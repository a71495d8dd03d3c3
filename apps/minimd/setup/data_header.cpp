#include "minimd/setup/data_header.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "minimd/base/limits.h"

namespace minimd {

namespace {

constexpr std::string_view single_titles[] = {"Atoms",  "Velocities", "Masses",    "Bonds",
                                              "Angles", "Dihedrals",  "Impropers", "Ellipsoids",
                                              "Lines",  "Triangles",  "Bodies",    "AngleTorsion"};

// The things of which an atomic system has none.
constexpr std::string_view other_counts[] = {"bonds",      "angles", "dihedrals", "impropers",
                                             "ellipsoids", "lines",  "triangles", "bodies"};

constexpr std::int64_t most_atoms = 1000000000000;

template <std::size_t n>
bool one_of(std::string_view word, const std::string_view (&words)[n]) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Lines such as "bond types" or "extra bond per atom": here there are no atoms that they could concern.
bool says_nothing_of_atoms(const std::vector<std::string_view>& words) {
    constexpr std::string_view bonded[] = {"bond", "angle", "dihedral", "improper"};
    return (words.size() == 3 && one_of(words[1], bonded) && words[2] == "types") ||
           (words.size() > 2 && words[1] == "extra") || (words.size() > 2 && words.back() == "atom");
}

void read_bounds(LineSource& lines, std::size_t d, DataHeader& header) {
    header.lo[d] = lines.number_at(0, "the lower bound");
    header.hi[d] = lines.number_at(1, "the upper bound");
    if (header.hi[d] <= header.lo[d]) lines.fail("an upper bound above the lower one");
    if (!std::isfinite(header.hi[d] - header.lo[d])) lines.fail("bounds whose difference is a number");
}

}  // namespace

bool is_section_title(const LineSource& lines) {
    const auto& words = lines.words();
    if (words.empty() || words[0].front() < 'A' || words[0].front() > 'Z') return false;
    return one_of(words[0], single_titles) || (words.size() > 1 && words.back() == "Coeffs") ||
           (words.size() > 2 && words[1] == "Type" && words[2] == "Labels");
}

DataHeader read_data_header(LineSource& lines) {
    DataHeader header;
    std::array<bool, 3> bounded{};
    lines.need("a title");
    while (lines.next()) {
        lines.drop_comment();
        const auto& words = lines.words();
        if (words.empty()) continue;
        if (is_section_title(lines)) break;
        const auto bounds = [&](std::string_view lo, std::string_view hi) {
            return words.size() == 4 && words[2] == lo && words[3] == hi;
        };
        if (words.size() == 2 && words[1] == "atoms") {
            header.atoms = lines.integer_at(0, "the number of atoms", 1, most_atoms);
        } else if (words.size() == 3 && words[1] == "atom" && words[2] == "types") {
            header.types = static_cast<int>(lines.integer_at(0, "the number of atom types", 1, most_types));
        } else if (bounds("xlo", "xhi") || bounds("ylo", "yhi") || bounds("zlo", "zhi")) {
            const auto d = static_cast<std::size_t>(words[2].front() - 'x');
            read_bounds(lines, d, header);
            bounded[d] = true;
        } else if (words.size() == 6 && words[3] == "xy" && words[4] == "xz" && words[5] == "yz") {
            for (std::size_t i = 0; i < 3; ++i)
                if (lines.number_at(i, "a tilt of the box") != 0.0) lines.fail("a box without tilt");
        } else if (words.size() == 2 && one_of(words[1], other_counts)) {
            lines.integer_at(0, std::string(words[1]) + ", of which miniMD has none,", 0, 0);
        } else if (!says_nothing_of_atoms(words)) {
            lines.fail(
                "a line of the header (N atoms, N atom types, LO HI xlo xhi, ...) or the title of a section");
        }
    }
    if (header.atoms == 0) lines.fail("the number of atoms ('N atoms') before this");
    for (std::size_t d = 0; d < 3; ++d)
        if (!bounded[d]) {
            const char axis = "xyz"[d];
            lines.fail(std::string("the bounds of the box ('LO HI ") + axis + "lo " + axis +
                       "hi') before this");
        }
    return header;
}

}  // namespace minimd
