// pair RANK FOLDER SECONDS: one of two ranks, which meet through files in FOLDER. Rank 1 sends 300,000 bytes
// to rank 0 every 20 ms until the time is up (exit code 0) or the other side is lost (3). Rank 0 only
// receives, and ends when rank 1 tells it to. Prints "running" after the first message.
#include <offpath/offpath.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Meeting {
    std::string folder;
    int rank = 0, times = 0;
};

void pause_ms(int time) {
    std::this_thread::sleep_for(std::chrono::milliseconds(time));
}

int gather(void* user, const void* mine, std::size_t bytes, void* all) {
    auto& meeting = *static_cast<Meeting*>(user);
    const auto name = [&](int rank) {
        return meeting.folder + "/" + std::to_string(meeting.times) + "." + std::to_string(rank);
    };
    {
        std::ofstream file(name(meeting.rank) + ".new", std::ios::binary);
        file.write(static_cast<const char*>(mine), static_cast<std::streamsize>(bytes));
    }
    std::filesystem::rename(name(meeting.rank) + ".new", name(meeting.rank));
    for (int rank = 0; rank < 2; ++rank) {
        const auto give_up = Clock::now() + std::chrono::seconds(60);
        while (!std::filesystem::exists(name(rank))) {
            if (Clock::now() > give_up) return 1;
            pause_ms(5);
        }
        std::ifstream file(name(rank), std::ios::binary);
        file.read(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes,
                  static_cast<std::streamsize>(bytes));
    }
    ++meeting.times;
    return 0;
}

void check(const char* what, offpath_status_t status) {
    if (status == OFFPATH_OK) return;
    std::fprintf(stderr, "%s: %s\n", what, offpath_status_string(status));
    std::_Exit(status == OFFPATH_ERR_PEER_LOST ? 3 : 1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    Meeting meeting{argv[2], std::atoi(argv[1]), 0};
    const auto stop = Clock::now() + std::chrono::duration<double>(std::atof(argv[3]));
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.rank = static_cast<std::uint32_t>(meeting.rank);
    params.size = 2;
    params.allgather = gather;
    params.allgather_user = &meeting;
    offpath_context_h context = nullptr;
    offpath_team_h world = nullptr;
    check("init", offpath_init(&params, &context));
    check("world", offpath_team_world(context, &world));
    std::vector<char> buffer(300'000);
    bool first = true;
    do {
        offpath_request_h request = nullptr;
        if (meeting.rank == 0) {
            check("recv", offpath_recv_offload(world, buffer.data(), buffer.size(), 1, 1, &request));
        } else {
            pause_ms(20);
            buffer[0] = Clock::now() >= stop ? 'e' : 'm';
            check("send", offpath_send_offload(world, buffer.data(), buffer.size(), 0, 1, &request));
        }
        check("wait", offpath_request_wait(request));
        check("free", offpath_request_free(request));
        if (first) {
            std::puts("running");
            std::fflush(stdout);
        }
        first = false;
    } while (buffer[0] != 'e');
    check("finalize", offpath_finalize(context));
    return 0;
}
