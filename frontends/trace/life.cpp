// MPI_Init, where a rank's trace begins, and MPI_Finalize, where it ends.
#include "base/codes.h"
#include "frontends/trace/clocks.h"
#include "frontends/trace/scope.h"

#include <offpath/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>

namespace offpath::traced {
namespace {

void open_trace(std::uint64_t entered_ns, const char* call) {
    int rank = 0, ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::array<char, 256> node{};
    gethostname(node.data(), node.size() - 1);
    trace::About about;
    about.node = node.data();
    about.program = program_invocation_short_name;
    about.rank = rank;
    about.ranks = ranks;
    std::string problem;
    try {
        (void)trace::open_from_environment(about, problem);
    } catch (const std::exception& error) {
        problem = error.what();
    }
    if (!problem.empty()) std::fprintf(stderr, "offpath: %s\n", with_code(problem, Code::file).c_str());
    compare_clocks_at_begin();
    if (!trace::on()) return;
    first_call = trace::number_of(call_names[0]);
    for (std::uint16_t i = 1; i < call_count; ++i)
        (void)trace::number_of(call_names[i]);
    const std::uint16_t name = trace::number_of(call);
    trace::put(trace::Kind::call, trace::Phase::begin, entered_ns, 0, 0, 0, name);
    trace::put(trace::Kind::call, trace::Phase::end, now_ns(), 0, 0, nobody, name);
}

}  // namespace
}  // namespace offpath::traced

using namespace offpath::traced;

extern "C" OFFPATH_API int MPI_Init(int* argc, char*** argv) {
    const std::uint64_t entered_ns = offpath::now_ns();
    const int result = reinterpret_cast<decltype(&MPI_Init)>(next("MPI_Init"))(argc, argv);
    if (result == MPI_SUCCESS) open_trace(entered_ns, "MPI_Init");
    return result;
}

extern "C" OFFPATH_API int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const std::uint64_t entered_ns = offpath::now_ns();
    const int result =
        reinterpret_cast<decltype(&MPI_Init_thread)>(next("MPI_Init_thread"))(argc, argv, required, provided);
    if (result == MPI_SUCCESS) open_trace(entered_ns, "MPI_Init_thread");
    return result;
}

extern "C" OFFPATH_API int MPI_Finalize() {
    const bool traced = offpath::trace::on();
    const std::uint16_t name = traced ? offpath::trace::number_of("MPI_Finalize") : std::uint16_t{0};
    compare_clocks_at_end();
    if (traced) offpath::trace::begin(offpath::trace::Kind::call, 0, 0, 0, name);
    const int result = reinterpret_cast<decltype(&MPI_Finalize)>(next("MPI_Finalize"))();
    if (traced)
        offpath::trace::put(offpath::trace::Kind::call, offpath::trace::Phase::end, offpath::now_ns(), 0, 0,
                            nobody, name);
    return result;
}
