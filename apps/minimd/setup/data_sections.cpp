#include "minimd/setup/data_sections.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace minimd {

namespace {

class Reader {
  public:
    Reader(LineSource& lines, const DataHeader& header) : lines_(lines), header_(header) {}

    void atoms(const std::function<void(const AtomRecord&)>& call) {
        refuse_other_styles();
        const std::string what = "id, type, x, y, z and maybe three image flags";
        each_line(header_.atoms, "atom", what, [&] {
            const std::size_t words = lines_.words().size();
            if (words != 5 && words != 8) lines_.fail(what);
            AtomRecord record{};
            record.id = lines_.integer_at(0, "an id", 1, header_.atoms);
            record.type = static_cast<std::int32_t>(lines_.integer_at(1, "a type", 1, header_.types) - 1);
            for (std::size_t d = 0; d < 3; ++d)
                record.x[d] = position(d);
            for (std::size_t i = 5; i < words; ++i)
                lines_.integer_at(i, "an image flag", -most_images, most_images);
            call(record);
        });
    }

    void velocities(const std::function<void(const AtomRecord&)>& call) {
        const std::string what = "id, vx, vy and vz";
        each_line(header_.atoms, "velocity", what, [&] {
            if (lines_.words().size() != 4) lines_.fail(what);
            AtomRecord record{};
            record.id = lines_.integer_at(0, "an id", 1, header_.atoms);
            for (std::size_t d = 0; d < 3; ++d)
                record.v[d] = lines_.number_at(1 + d, "a velocity");
            call(record);
        });
    }

    double masses() {
        std::optional<double> mass;
        each_line(header_.types, "mass", "type and mass", [&] {
            lines_.integer_at(0, "a type", 1, header_.types);
            const double value = lines_.number_at(1, "a mass");
            if (value <= 0.0) lines_.fail("a mass above 0", lines_.words()[1]);
            if (mass && *mass != value)
                lines_.fail("the mass of the types before, as miniMD has one for all", lines_.words()[1]);
            mass = value;
        });
        return *mass;
    }

    // Skips to the next title. Returns false at the end of the file.
    bool skip_section() {
        while (lines_.next()) {
            lines_.drop_comment();
            if (is_section_title(lines_)) return true;
        }
        return false;
    }

    // Goes from the last line of a section to the next title.
    bool next_title() {
        while (lines_.next()) {
            lines_.drop_comment();
            if (lines_.words().empty()) continue;
            if (!is_section_title(lines_)) lines_.fail("the title of a section");
            return true;
        }
        return false;
    }

  private:
    static constexpr std::int64_t most_images = 1000000000;
    static constexpr double most_boxes = 1e6;

    // Returns the position relative to the lower bound. A position so far away that wrapping would leave few
    // digits is a mistake.
    double position(std::size_t d) const {
        const double length = header_.hi[d] - header_.lo[d];
        const double x = lines_.number_at(2 + d, "a position") - header_.lo[d];
        if (!(std::abs(x) <= most_boxes * length))
            lines_.fail("a position within a million boxes of this one", lines_.words()[2 + d]);
        return x;
    }

    void refuse_other_styles() const {
        const std::string_view comment = lines_.comment();
        const std::size_t at = comment.find_first_not_of(" \t\r");
        if (at == comment.npos) return;
        const std::string_view style = comment.substr(at, comment.find_first_of(" \t\r", at) - at);
        if (style != "atomic") lines_.fail("atoms of the style atomic", style);
    }

    template <typename Call>
    void each_line(std::int64_t count, const std::string& noun, const std::string& what, const Call& call) {
        // The vector grows with the ids that arrive, because the header may promise any number.
        std::vector<bool> seen;
        for (std::int64_t read = 0; read < count;) {
            const std::string expected =
                noun + " " + std::to_string(read + 1) + " of " + std::to_string(count) + " (" + what + ")";
            if (!lines_.next()) lines_.fail(expected);
            lines_.drop_comment();
            if (lines_.words().empty()) continue;
            const std::optional<std::int64_t> id = to_integer(lines_.words()[0]);
            if (!id) lines_.fail(expected);
            call();
            const auto place = static_cast<std::size_t>(*id);
            if (place >= seen.size()) seen.resize(std::max(place + 1, 2 * seen.size()));
            if (seen[place]) lines_.fail("each " + noun + " once", lines_.words()[0]);
            seen[place] = true;
            ++read;
        }
    }

    LineSource& lines_;
    const DataHeader& header_;
};

// Returns the title's words, however they were spaced.
std::string title_of(const LineSource& lines) {
    std::string title;
    for (const std::string_view word : lines.words())
        title += (title.empty() ? "" : " ") + std::string(word);
    return title;
}

}  // namespace

DataContents read_data_sections(LineSource& lines, const DataHeader& header,
                                const std::function<void(const AtomRecord&)>& atom,
                                const std::function<void(const AtomRecord&)>& velocity) {
    DataContents contents;
    Reader reader(lines, header);
    bool have_atoms = false, have_velocities = false;
    for (bool more = is_section_title(lines); more;) {
        const std::string title(lines.words()[0]);
        if (title == "Atoms") {
            if (have_atoms) lines.fail("one section Atoms");
            reader.atoms(atom);
            have_atoms = true;
        } else if (title == "Velocities") {
            if (!have_atoms) lines.fail("the section Atoms before this one");
            if (have_velocities) lines.fail("one section Velocities");
            reader.velocities(velocity);
            have_velocities = true;
        } else if (title == "Masses") {
            if (contents.mass) lines.fail("one section Masses");
            contents.mass = reader.masses();
        } else {
            contents.skipped.push_back(lines.name() + ":" + std::to_string(lines.number()) + ": section '" +
                                       title_of(lines) + "' skipped");
            more = reader.skip_section();
            continue;
        }
        more = reader.next_title();
    }
    if (!have_atoms) lines.fail("the section Atoms");
    return contents;
}

}  // namespace minimd
