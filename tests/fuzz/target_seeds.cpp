// The first inputs of fuzz-target: one record of each kind, and a few in a row. Usage: PROGRAM FOLDER
#include "seed_folder.h"
#include "target/record_io.h"

using namespace offpath;
using namespace offpath::target;

int main(int argc, char** argv) {
    fuzz::SeedFolder folder(argc, argv);
    const std::vector<std::byte> text(20, std::byte{'x'});
    std::vector<std::vector<std::byte>> records(6);
    append_record(records[0], 1, 0, Done{0, 0, 7}, text);
    append_record(records[1], 2, 0, Data{64}, text);
    append_record(records[2], 0, 0, Output{1}, text);
    append_record(records[3], 0, 0, Lost{11, 8}, text);
    append_record(records[4], 0, 0, Beat{1});
    append_record(records[5], 3, 0, Store{1}, text);
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < records.size(); ++i) {
        folder.write("kind" + std::to_string(i), records[i]);
        if (i != 3) all.insert(all.end(), records[i].begin(), records[i].end());
    }
    folder.write("row", all);
    return folder.exit_code();
}
