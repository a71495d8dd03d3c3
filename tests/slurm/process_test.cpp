#include "slurm/process.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace {

std::string asked(const std::string& script, int ms) {
    const offpath_user_t user{getuid(), getgid(), nullptr, 0};
    std::string words[] = {"/bin/sh", "-c", script};
    char* const command[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    std::array<char, 64> line{};
    offpath_process_ask(&user, command, environ, getpid(), ms, line.data(), line.size());
    return line.data();
}

// A process that has ended may wait for its new parent to notice.
bool runs(pid_t process) {
    std::string word;
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    file >> word >> word >> word;
    return file && word != "Z" && word != "X";
}

TEST(SlurmProcess, TheFirstLineIsTheAnswer) {
    EXPECT_EQ(asked("echo first; echo second", 10000), "first");
    EXPECT_EQ(asked("exit 3", 10000), "");
    EXPECT_EQ(asked("exec sleep 60", 100), "");
}

TEST(SlurmProcess, WhatACommandHasStartedEndsWithIt) {
    const std::string answer = asked("sleep 60 & echo $!; wait", 10000);
    ASSERT_NE(answer, "");
    const pid_t started = std::stoi(answer);
    for (int i = 0; i < 500 && runs(started); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(runs(started));
}

}  // namespace
