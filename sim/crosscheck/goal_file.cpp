#include "sim/crosscheck/goal_file.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <unordered_map>

namespace offpath::sim {
namespace {

using Words = std::vector<std::string>;

class GoalReader {
  public:
    explicit GoalReader(const std::string& path) : path_(path) {}

    GoalJob run() {
        std::ifstream file(path_);
        if (!file) throw GoalError(fmt::format("{}: cannot be read", path_));
        std::string text;
        while (std::getline(file, text)) {
            ++line_;
            std::istringstream in(text);
            Words words;
            for (std::string word; in >> word;)
                words.push_back(std::move(word));
            if (!words.empty()) take(words);
        }
        if (inside_) fail("the last block is not closed");
        if (blocks_ != job_.ranks)
            fail(fmt::format("{} ranks are announced, {} are there", job_.ranks, blocks_));
        match();
        return std::move(job_);
    }

  private:
    [[noreturn]] void fail(const std::string& why) const {
        throw GoalError(fmt::format("{}, line {}: {}", path_, line_, why));
    }

    void take(const Words& words) {
        if (words[0] == "num_ranks" && words.size() == 2 && job_.ranks == 0) {
            job_.ranks = number(words[1], 1'000'000);
            if (job_.ranks == 0) fail("at least one rank is wanted");
        } else if (words[0] == "rank" && words.size() == 3 && words[2] == "{" && !inside_) {
            if (number(words[1], 1'000'000) != blocks_ || blocks_ >= job_.ranks)
                fail(fmt::format("the block of rank {} is wanted, of {}", blocks_, job_.ranks));
            inside_ = true;
        } else if (words[0] == "}" && words.size() == 1 && inside_) {
            inside_ = false;
            ++blocks_;
            labels_.clear();
        } else if (inside_ && words.size() == 3 && words[1] == "requires") {
            const std::uint32_t before = labelled(words[2]), after = labelled(words[0]);
            job_.ops[before].successors.push_back(after);
            ++job_.ops[after].waits_for;
        } else if (inside_) {
            operation(words);
        } else {
            fail(fmt::format("\"{}\" is not accepted here", words[0]));
        }
    }

    void operation(Words words) {
        if (words[0].back() == ':') {
            words[0].pop_back();
            if (!labels_.emplace(words[0], static_cast<std::uint32_t>(job_.ops.size())).second)
                fail(fmt::format("the label {} is there twice", words[0]));
            words.erase(words.begin());
        }
        GoalOp op;
        op.rank = blocks_;
        const bool sends = words.size() == 6 && words[0] == "send" && words[2] == "to";
        const bool receives = words.size() == 6 && words[0] == "recv" && words[2] == "from";
        if ((sends || receives) && words[4] == "tag" && words[1].back() == 'b') {
            words[1].pop_back();
            op.kind = sends ? GoalKind::send : GoalKind::recv;
            op.amount = number(words[1], UINT64_MAX);
            op.peer = static_cast<std::uint32_t>(number(words[3], job_.ranks - 1));
            op.tag = static_cast<std::uint32_t>(number(words[5], UINT32_MAX));
        } else if (words.size() == 2 && words[0] == "calc") {
            op.amount = number(words[1], UINT64_MAX);
        } else {
            fail(
                "\"send Nb to RANK tag T\", \"recv Nb from RANK tag T\", \"calc N\" or \"A requires B\" is "
                "wanted");
        }
        job_.ops.push_back(std::move(op));
    }

    std::uint32_t labelled(const std::string& label) const {
        const auto found = labels_.find(label);
        if (found == labels_.end()) fail(fmt::format("no operation before has the label {}", label));
        return found->second;
    }

    std::uint64_t number(const std::string& word, std::uint64_t most) const {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size() || value > most)
            fail(fmt::format("\"{}\" is not accepted: a number from 0 to {} is wanted", word, most));
        return value;
    }

    void match() {
        using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;
        std::map<Message, std::deque<std::uint32_t>> sends;  // from, to, tag, bytes
        for (std::uint32_t id = 0; id < job_.ops.size(); ++id) {
            const GoalOp& op = job_.ops[id];
            if (op.kind == GoalKind::send) sends[{op.rank, op.peer, op.tag, op.amount}].push_back(id);
        }
        for (std::uint32_t id = 0; id < job_.ops.size(); ++id) {
            GoalOp& op = job_.ops[id];
            if (op.kind != GoalKind::recv) continue;
            auto& open = sends[{op.peer, op.rank, op.tag, op.amount}];
            if (open.empty())
                throw GoalError(
                    fmt::format("{}: rank {} receives {} bytes of tag {} from rank {}, which sends none",
                                path_, op.rank, op.amount, op.tag, op.peer));
            op.match = open.front();
            job_.ops[op.match].match = id;
            open.pop_front();
        }
        for (const auto& [message, open] : sends)
            if (!open.empty())
                throw GoalError(fmt::format(
                    "{}: rank {} sends {} bytes of tag {} to rank {}, which receives none", path_,
                    std::get<0>(message), std::get<3>(message), std::get<2>(message), std::get<1>(message)));
    }

    std::string path_;
    GoalJob job_;
    std::size_t line_ = 0;
    std::uint32_t blocks_ = 0;
    bool inside_ = false;
    std::unordered_map<std::string, std::uint32_t> labels_;  // of the block that is read
};

}  // namespace

GoalJob read_goal(const std::string& path) {
    return GoalReader(path).run();
}

}  // namespace offpath::sim
