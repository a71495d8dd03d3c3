// A fixture that creates a folder shared by all ranks and makes it the working directory during a test.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace minimd {

class ScratchFolder : public testing::Test {
  protected:
    void SetUp() override {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        char name[64] = "/tmp/minimd-test-XXXXXX";
        if (rank_ == 0 && mkdtemp(name) == nullptr) MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
        folder_ = name;
        before_ = std::filesystem::current_path();
        std::filesystem::current_path(folder_);
    }
    void TearDown() override {
        std::filesystem::current_path(before_);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == 0) std::filesystem::remove_all(folder_);
    }
    void write(const std::string& name, const std::string& text) const {
        if (rank_ == 0) std::ofstream(name, std::ios::binary) << text;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // Returns the file's content on every rank. Barriers separate this from writes before and after it.
    static std::string content(const std::string& name) {
        MPI_Barrier(MPI_COMM_WORLD);
        std::ostringstream all;
        all << std::ifstream(name, std::ios::binary).rdbuf();
        MPI_Barrier(MPI_COMM_WORLD);
        return all.str();
    }

    int rank_ = 0, ranks_ = 1;

  private:
    std::string folder_;
    std::filesystem::path before_;
};

}  // namespace minimd
