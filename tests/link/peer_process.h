// Runs a link_peer (peer_main.cpp) in another process, and kills it at the end.
#pragma once

#include "../other_program.h"
#include "peer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace offpath::link::test {

class Peer {
  public:
    explicit Peer(const char* role) {
        int in[2], out[2];
        EXPECT_EQ(pipe(in), 0);
        EXPECT_EQ(pipe(out), 0);
        pid_ = fork();
        if (pid_ == 0) {
            dup2(in[0], 0);
            dup2(out[1], 1);
            for (int fd : {in[0], in[1], out[0], out[1]})
                close(fd);
            offpath::test::become_other_program(LINK_PEER, {role});
        }
        close(in[0]);
        close(out[1]);
        to_ = fdopen(in[1], "w");
        from_ = fdopen(out[0], "r");
    }
    ~Peer() {
        kill();
        fclose(to_);
        fclose(from_);
    }
    std::string read_line() {
        std::string line;
        for (int c = fgetc(from_); c != EOF && c != '\n'; c = fgetc(from_))
            line += static_cast<char>(c);
        return line;
    }
    void write_line(const std::string& line) {
        fprintf(to_, "%s\n", line.c_str());
        fflush(to_);
    }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    pid_t pid_ = -1;
    FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace offpath::link::test
