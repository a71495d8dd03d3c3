// What kernels tell their program: why they failed, and what they print.
#include "back_end_fixture.h"
#include "kernel_calls.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace offpath::test {
namespace {

class KernelTexts : public BackEndTest {};
INSTANTIATE_TEST_SUITE_P(BackEnds, KernelTexts, testing::Values("auto"));

std::string node_of(offpath_context_h context) {
    offpath_context_info_t info{};
    info.struct_size = sizeof info;
    expect(offpath_context_query(context, &info), OFFPATH_OK, "query");
    return info.node;
}

std::string last_error(offpath_context_h context) {
    char text[OFFPATH_KERNEL_ERROR_BYTES];
    expect(offpath_kernel_last_error(context, text, sizeof text), OFFPATH_OK, "last error");
    return text;
}

// Standard output or standard error of this rank goes to a file from now on.
void redirect(int descriptor, const std::string& path) {
    std::fflush(nullptr);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    require(file >= 0 && dup2(file, descriptor) == descriptor, "redirect to " + path);
    close(file);
}

std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

std::size_t count_of(const std::string& path, const std::string& words) {
    const auto lines = lines_of(path);
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find(words) != std::string::npos;
    }));
}

void require_in(const std::string& words, const std::string& text) {
    require(text.find(words) != std::string::npos, "'" + words + "' in '" + text + "'");
}

TEST_P(KernelTexts, TellHowAKernelFailed) {
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        const std::string errors = directory.path() + "/errors";
        redirect(STDERR_FILENO, errors);
        offpath_context_h context = me.init();
        require(last_error(context).empty(), "no kernel, no error");
        offpath_kernel_h step = load(context, "test_step");
        std::uint64_t value = 1;
        expect(run(step, std::uint64_t{1}, {{&value, sizeof value, OFFPATH_INOUT}}), OFFPATH_OK, "step");
        require(last_error(context).empty(), "no failure, no error");
        expect(run(load(context, "test_crash"), 0, {}), OFFPATH_ERR_CANCELED, "crash");
        require_in("kernel test_crash: ", last_error(context));
        require_in("signal 11 (Segmentation fault)", last_error(context));
        expect(run(load(context, "test_throw"), 0, {}), OFFPATH_ERR_SYSTEM, "throw");
        require_in("kernel test_throw: an exception left it: std::bad_alloc", last_error(context));
        char few[7];
        expect(offpath_kernel_last_error(context, few, sizeof few), OFFPATH_OK, "a short text");
        require(std::string(few) == "kernel", "cut");
        expect(offpath_kernel_last_error(context, few, 0), OFFPATH_ERR_INVALID, "no room");
        expect(offpath_kernel_last_error(nullptr, few, 1), OFFPATH_ERR_INVALID, "no context");
        const std::string node = node_of(context);
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        require(count_of(errors, "device " + node +
                                     ": kernel test_crash: the process that runs it ended: "
                                     "signal 11 (Segmentation fault)") == 1,
                "one line about the crash");
    }));
    EXPECT_TRUE(daemon.running());
}

// The rank whose kernel it was is told.
TEST_P(KernelTexts, TellHowAKernelOfAGroupFailed) {
    EXPECT_TRUE(all_right(2, directory.path(), [](const Rank& me) {
        offpath_context_h context = me.init();
        offpath_group_h group = nullptr;
        char byte = 0;
        expect(offpath_group_create(me.world(context), &group), OFFPATH_OK, "create");
        if (me.rank == 0) {
            expect(offpath_group_compute(group, load(context, "test_crash"), nullptr, 0, nullptr, 0),
                   OFFPATH_OK, "record");
            expect(offpath_group_send(group, &byte, 1, 1, 0), OFFPATH_OK, "send");
            expect(offpath_group_depend(group, 1, 0), OFFPATH_OK, "depend");
        } else {
            expect(offpath_group_recv(group, &byte, 1, 0, 0), OFFPATH_OK, "recv");
        }
        expect(offpath_group_end(group), OFFPATH_OK, "end");
        expect(offpath_group_start(group), OFFPATH_OK, "start");
        expect(offpath_group_wait(group), OFFPATH_ERR_CANCELED, "wait");
        if (me.rank == 0)
            require_in("kernel test_crash: the process that runs it ended: signal 11", last_error(context));
        else
            require(last_error(context).empty(), "no kernel here");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
    }));
}

TEST_P(KernelTexts, AreWhatKernelsPrint) {
    EXPECT_TRUE(all_right(1, directory.path(), [&](const Rank& me) {
        const std::string output = directory.path() + "/output", errors = directory.path() + "/errors";
        redirect(STDOUT_FILENO, output);
        redirect(STDERR_FILENO, errors);
        offpath_context_h context = me.init();
        offpath_kernel_h print = load(context, "test_print");
        // 1.4 MB: more than pipes and sockets hold.
        constexpr int lines = 50000;
        expect(run(print, lines, {}), OFFPATH_OK, "print");
        // Everything is out when this call returns. The last one had no end.
        (void)last_error(context);
        const std::string before = "[" + node_of(context) + "] ";
        std::vector<std::string> wanted;
        for (int i = 0; i < lines; ++i)
            wanted.push_back(before + "this is line number " + std::to_string(i));
        wanted.push_back(before + "the last one");
        require(lines_of(output) == wanted, "the lines, in order");
        require(count_of(errors, before + "to standard error") == 1, "standard error");
        // What a kernel prints before it crashes is not lost, nor is what comes just before the end.
        expect(run(load(context, "test_print_and_crash"), 0, {}), OFFPATH_ERR_CANCELED, "crash");
        expect(run(print, 0, {}), OFFPATH_OK, "print");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        wanted.push_back(before + "before the crash");
        wanted.push_back(before + "the last one");
        require(lines_of(output) == wanted, "the last lines");
    }));
    EXPECT_EQ(daemon.log().find("line number"), std::string::npos);
}

// While nobody reads the program's output, only the kernel that prints waits.
TEST_P(KernelTexts, HoldUpNothingElse) {
    EXPECT_TRUE(all_right(1, directory.path(), [](const Rank& me) {
        int ends[2];
        require(pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO, "a pipe");
        close(ends[1]);
        offpath_context_h context = me.init();
        offpath_kernel_h print = load(context, "test_print"), step = nullptr;
        expect(offpath_kernel_load_in(context, OFFPATH_TEST_KERNELS, "test_step", 1, &step), OFFPATH_OK,
               "load");
        offpath_request_h printing = start(print, 50000, {});
        for (std::uint64_t i = 0; i < 50; ++i) {
            void* memory = nullptr;
            expect(offpath_mem_alloc(context, 100000, &memory), OFFPATH_OK, "alloc");
            expect(run(step, i, {{memory, 100000, OFFPATH_INOUT}}), OFFPATH_OK, "step");
            expect(offpath_mem_free(context, memory), OFFPATH_OK, "free");
        }
        expect(offpath_request_test(printing), OFFPATH_IN_PROGRESS, "its output does not fit");
        std::size_t lines = 0;
        std::thread reader([&] {
            char text[4096];
            for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
                lines += static_cast<std::size_t>(std::count(text, text + got, '\n'));
        });
        expect(finish(printing), OFFPATH_OK, "print");
        expect(offpath_finalize(context), OFFPATH_OK, "finalize");
        close(STDOUT_FILENO);
        reader.join();
        require(lines == 50001, "all lines, not " + std::to_string(lines));
    }));
}

}  // namespace
}  // namespace offpath::test
