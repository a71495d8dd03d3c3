// Writes the first inputs of fuzz-control into a folder: one of every message and command, a stream of the
// messages, and a ring of the commands.
#include "../control/samples.h"
#include "seed_folder.h"

int main(int argc, char** argv) {
    using namespace offpath::control;
    offpath::fuzz::SeedFolder folder(argc, argv);
    int number = 0;
    const auto write = [&](const std::vector<std::byte>& bytes) {
        folder.write("seed" + std::to_string(number++), bytes);
    };
    std::vector<std::byte> stream;
    for (const Message& message : samples::messages()) {
        const auto bytes = encode_message(message);
        write(bytes);
        for (std::size_t i = 0; i < 4; ++i)
            stream.push_back(static_cast<std::byte>(bytes.size() >> (8 * i)));
        stream.insert(stream.end(), bytes.begin(), bytes.end());
    }
    write(stream);
    const samples::Storage storage;
    std::vector<std::byte> ring;
    for (const Command& command : samples::commands(storage)) {
        auto record = samples::record_of(command);
        write(record);
        record.resize((record.size() + 63) / 64 * 64);
        ring.insert(ring.end(), record.begin(), record.end());
    }
    write(ring);
    return folder.exit_code();
}
