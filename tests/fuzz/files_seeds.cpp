// Writes the first inputs of fuzz-files into a folder: a small file of each format, behind the byte that
// chooses its reader.
#include "seed_folder.h"

#include <cstring>
#include <string>

int main(int argc, char** argv) {
    offpath::fuzz::SeedFolder folder(argc, argv);
    const auto write = [&](const char* name, char reader, const std::string& text) {
        const std::string input = reader + text;
        folder.write(name, std::as_bytes(std::span(input)));
    };
    write("table", 0,
          R"({"offpath_tuning": 1, "rows": [{"op": "ialltoall", "ranks": 4, "nodes": 2, "bytes": 65536,)"
          R"( "host": {"pure_s": 0.002, "overlap": 0.1}, "device": {"pure_s": 0.0021, "overlap": 0.97}}]})");
    write(
        "profile", 1,
        R"({"format": "offpath-profile", "version": 1, "rank": 0, "ranks": 1, "begin_s": 0, "end_s": 1,)"
        R"( "compute_at_end_s": 0.1, "lost": 0, "communicators": [{"occurrence": 0, "rank": 0, "members": [0]}],)"
        R"( "calls": [{"call": "MPI_Barrier", "comm": 0}],)"
        R"( "sequence": [[0, 1, 0.1, 0.01, 0], {"times": 3, "body": [[0, 1, 0.1, 0.01, 0]]}]})");
    write("input", 2,
          "title\nmore\nlj units\nnone data\nlj force\n1.0 1.0 epsilon\n4 4 4 cells\n100 steps\n0.005 "
          "step\n1.44 "
          "temperature\n0.8442 density\n20 builds\n2.5 0.3 cutoff\n100 lines\n");
    write("potential", 3, "Cu\n29 63.55 3.615 FCC\n4 0.1 4 0.5 2.0\n0 1 2 3\n11 10 9 8\n1 0.5 0.2 0\n");
    write("data", 4,
          "title\n\n2 atoms\n1 atom types\n0 4 xlo xhi\n0 4 ylo yhi\n0 4 zlo zhi\n\nMasses\n\n1 "
          "1.0\n\nAtoms\n\n"
          "1 1 0.5 0.5 0.5\n2 1 1.5 1.5 1.5\n\nVelocities\n\n1 0 0 0\n2 0.1 0 0\n");
    // An atom: its header is made by the fuzzer, apart from the box.
    std::string restart(128 + 64, '\0');
    for (std::size_t d = 0; d < 3; ++d) {
        const double length = 4;
        std::memcpy(restart.data() + 32 + 8 * d, &length, sizeof length);
    }
    restart[72] = 1;
    restart[128] = 1;
    write("restart", 6, restart);
    // More atoms than any file has bytes for.
    restart.replace(16, 8, 8, '\x37');
    write("restart-of-too-many", 7, restart);
    return folder.exit_code();
}
