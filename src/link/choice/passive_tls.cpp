#include "link/choice/passive_tls.h"

#include <algorithm>
#include <vector>

namespace offpath::link {
namespace {

constexpr std::string_view helper = ":aux";

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> words;
    while (!list.empty()) {
        const std::size_t length = std::min(list.find(','), list.size());
        if (length > 0) words.emplace_back(list.substr(0, length));
        list.remove_prefix(std::min(length + 1, list.size()));
    }
    return words;
}

bool is_reliable(std::string_view word) {
    return word.starts_with("rc") || word.starts_with("dc");
}

// Whether the words have a reliable transport of one of UCX's two drivers, by its name or its letter.
bool has(const std::vector<std::string>& words, std::string_view driver, std::string_view letter) {
    return std::ranges::any_of(words, [&](std::string_view word) {
        return is_reliable(word) && (word.ends_with(driver) || word.ends_with(letter));
    });
}

// UCX knows helpers by the names of transports, not by the short names for several of them.
void add_helpers(std::string_view word, const std::vector<std::string>& words,
                 std::vector<std::string>& kept) {
    if (word.ends_with(helper)) {
        kept.emplace_back(word);
        return;
    }
    if (word == "ud_verbs" || word == "ud_v" || (word == "ud" && has(words, "_verbs", "_v")))
        kept.push_back("ud_verbs" + std::string(helper));
    if (word == "ud_mlx5" || word == "ud_x" || (word == "ud" && has(words, "_mlx5", "_x")))
        kept.push_back("ud_mlx5" + std::string(helper));
}

}  // namespace

std::string passive_tls(std::string_view allowed) {
    const std::vector<std::string> words = words_of(allowed);
    const bool reliable = std::ranges::any_of(words, is_reliable);
    std::vector<std::string> kept;
    for (const std::string& word : words) {
        if (!word.starts_with("ud") && word != "tcp" && word != "self") kept.push_back(word);
        if (word.starts_with("ud") && reliable) add_helpers(word, words, kept);
    }
    std::string list;
    for (const std::string& word : kept)
        list += (list.empty() ? "" : ",") + word;
    return list;
}

}  // namespace offpath::link
