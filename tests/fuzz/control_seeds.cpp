// Writes the first inputs of fuzz-control into a folder: one of every message and command, a stream of the
// messages, and a ring of the commands.
#include "../control/samples.h"

#include <cstdio>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
    using namespace offpath::control;
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    int number = 0;
    const auto write = [&](const std::vector<std::byte>& bytes) {
        std::ofstream file(std::string(argv[1]) + "/seed" + std::to_string(number++), std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return file.flush().good();
    };
    bool good = true;
    std::vector<std::byte> stream;
    for (const Message& message : samples::messages()) {
        const auto bytes = encode_message(message);
        good &= write(bytes);
        for (std::size_t i = 0; i < 4; ++i)
            stream.push_back(static_cast<std::byte>(bytes.size() >> (8 * i)));
        stream.insert(stream.end(), bytes.begin(), bytes.end());
    }
    good &= write(stream);
    const samples::Storage storage;
    std::vector<std::byte> ring;
    for (const Command& command : samples::commands(storage)) {
        auto record = samples::record_of(command);
        good &= write(record);
        record.resize((record.size() + 63) / 64 * 64);
        ring.insert(ring.end(), record.begin(), record.end());
    }
    good &= write(ring);
    if (!good) std::fprintf(stderr, "%s: cannot write to %s\n", argv[0], argv[1]);
    return good ? 0 : 1;
}
