// The program of the second process in a two-process test; call it in the child after a fork. Environment:
// OFFPATH_TEST_PEERS is a folder with another build of the program, such as build-aarch64/bin.
// OFFPATH_TEST_EMULATOR runs it if this machine cannot, such as build-aarch64/bin/run.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace offpath::test {

[[noreturn]] inline void become_other_program(const std::string& built,
                                              const std::vector<std::string>& arguments) {
    const char* peers = std::getenv("OFFPATH_TEST_PEERS");
    const char* emulator = std::getenv("OFFPATH_TEST_EMULATOR");
    std::vector<std::string> words;
    if (emulator && *emulator) words.push_back(emulator);
    words.push_back(peers && *peers ? peers + built.substr(built.rfind('/')) : built);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> line;
    for (std::string& word : words)
        line.push_back(word.data());
    line.push_back(nullptr);
    execv(line[0], line.data());
    _exit(127);
}

}  // namespace offpath::test
