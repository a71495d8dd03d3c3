#include "kernel_host/descendants.h"

#include "kernel_host/openmp_mark.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace offpath::kernel_host {
namespace {

struct Facts {
    pid_t parent = 0, group = 0;
    bool ended = false;
};

// False: there is no such process any more.
bool read_facts(pid_t pid, Facts& facts) {
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return false;
    text[length] = '\0';
    // The name, in parentheses, may contain anything.
    const char* const rest = std::strrchr(text, ')');
    char state = 0;
    long threads = 0;
    if (rest == nullptr ||
        std::sscanf(rest + 1, " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                    &facts.parent, &facts.group, &threads) != 4)
        return false;
    // The first thread may have ended before others.
    facts.ended = (state == 'Z' || state == 'X') && threads <= 1;
    return true;
}

std::map<pid_t, Facts> all_processes() {
    std::map<pid_t, Facts> found;
    DIR* const directory = opendir("/proc");
    if (directory == nullptr) return found;
    while (const dirent* const entry = readdir(directory)) {
        const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
        Facts facts;
        if (pid > 0 && read_facts(pid, facts)) found[pid] = facts;
    }
    closedir(directory);
    return found;
}

std::vector<pid_t> children_in(const std::map<pid_t, Facts>& processes) {
    std::vector<pid_t> found;
    for (const auto& [pid, facts] : processes)
        if (facts.parent == getpid()) found.push_back(pid);
    return found;
}

// Whether the process has given its memory back and is about to end. Its environment is gone, so nobody can
// tell whose it was, and its children are not yet those of another process.
bool is_ending(pid_t pid) {
    unsigned long pages = 1;
    std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> pages;
    return pages == 0;
}

bool one_is_ending(const std::map<pid_t, Facts>& processes) {
    return std::ranges::any_of(processes, [](const auto& each) {
        return each.second.parent == getpid() && !each.second.ended && is_ending(each.first);
    });
}

std::vector<pid_t> below(const std::map<pid_t, Facts>& processes, const std::vector<pid_t>& roots) {
    std::multimap<pid_t, pid_t> by_parent;
    for (const auto& [pid, facts] : processes)
        by_parent.emplace(facts.parent, pid);
    std::set<pid_t> known(roots.begin(), roots.end());
    std::vector<pid_t> found(known.begin(), known.end());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto [begin, end] = by_parent.equal_range(found[i]);
        for (auto child = begin; child != end; ++child)
            if (known.insert(child->second).second) found.push_back(child->second);
    }
    std::erase_if(found, [&](pid_t pid) {
        const auto facts = processes.find(pid);
        return facts == processes.end() || facts->second.ended;
    });
    return found;
}

// Groups of which each member is one of `members`. A kill of such a group meets nobody else, and none of it
// escapes by a fork.
std::set<pid_t> own_groups(const std::map<pid_t, Facts>& processes, const std::vector<pid_t>& members) {
    const std::set<pid_t> known(members.begin(), members.end());
    std::set<pid_t> groups;
    for (const pid_t pid : members)
        groups.insert(processes.at(pid).group);
    for (const auto& [pid, facts] : processes)
        if (!facts.ended && !known.contains(pid)) groups.erase(facts.group);
    groups.erase(getpgrp());
    return groups;
}

// Children of this process's first thread, which orphans become, where the kernel lists them.
std::vector<pid_t> listed_children() {
    std::vector<pid_t> found;
    std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (pid_t pid = 0; list >> pid;)
        found.push_back(pid);
    return found;
}

// A process that ends as soon as it has a successor may be gone whenever all processes have been listed. Its
// successors become children of this one, whose list is short.
void end_successors(const std::function<bool(pid_t)>& meant) {
    for (int i = 0; i < 100; ++i) {
        const std::vector<pid_t> mine = listed_children();
        for (const pid_t pid : mine)
            if (meant(pid) && kill(pid, SIGKILL) == 0) waitpid(pid, nullptr, WNOHANG);
    }
}

}  // namespace

bool end_children(const std::function<bool(pid_t)>& meant, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (true) {
        const std::map<pid_t, Facts> processes = all_processes();
        std::vector<pid_t> mine = children_in(processes);
        std::erase_if(mine, [&](pid_t pid) { return !meant(pid); });
        if (mine.empty() && !one_is_ending(processes)) return true;
        const std::vector<pid_t> all = below(processes, mine);
        for (const pid_t group : own_groups(processes, all))
            kill(-group, SIGKILL);
        for (const pid_t pid : all)
            kill(pid, SIGKILL);
        end_successors(meant);
        for (const pid_t pid : mine) {
            remove_openmp_mark(pid);
            waitpid(pid, nullptr, WNOHANG);
        }
        if (std::chrono::steady_clock::now() > end) return false;
        const timespec moment{0, 500'000};
        nanosleep(&moment, nullptr);
    }
}

}  // namespace offpath::kernel_host
