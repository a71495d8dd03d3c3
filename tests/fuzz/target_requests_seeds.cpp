// The first inputs of fuzz-requests: one request of each kind, and all of them in a row. Usage: PROGRAM
// FOLDER
#include "seed_folder.h"
#include "target/record_io.h"

using namespace offpath;
using namespace offpath::target;

int main(int argc, char** argv) {
    fuzz::SeedFolder folder(argc, argv);
    const std::vector<std::byte> text(32, std::byte{'x'});
    const std::string list("one\0two\0", 8);
    const auto names = std::as_bytes(std::span(list));
    std::vector<std::byte> all;
    int number = 0;
    const auto add = [&](const auto& body, std::span<const std::byte> payload = {}) {
        std::vector<std::byte> record;
        append_record(record, 1, 1, body, payload);
        folder.write("kind" + std::to_string(number++), record);
        all.insert(all.end(), record.begin(), record.end());
    };
    add(FindImage{});
    add(FindImage{{}, {}, max_image_bytes + 1});
    add(LoadImage{}, text);
    add(LoadLibrary{}, names);
    add(FindSymbols{1, 2}, names);
    add(Allocate{64});
    add(MapFile{3, 1, 2, 4096, 0});
    add(Part{64});
    add(Release{64});
    add(Put{64}, text);
    add(PutFrom{64, 128, 32});
    add(Get{64, 128, 32});
    add(Copy{64, 128, 32});
    add(Call{64}, text);
    add(Sync{});
    add(Unify{}, text);
    add(Fetched{}, text);
    folder.write("row", all);
    return folder.exit_code();
}
