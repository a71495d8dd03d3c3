#include "pair.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "common/clock.h"

namespace primitives {

namespace {

constexpr std::uint32_t kTag = 7;

void check(offpath_status_t status, const char* call) {
    if (status != OFFPATH_OK)
        throw std::runtime_error(std::string(call) + ": " + offpath_status_string(status));
}

void finish(offpath_request_h request) {
    check(offpath_request_wait(request), "offpath_request_wait");
    check(offpath_request_free(request), "offpath_request_free");
}

using ::bench::now_s;

unsigned char expected(std::uint32_t sender, std::size_t i) {
    return static_cast<unsigned char>(i * 131 + i / 251 + sender * 89 + 1);
}

}  // namespace

Pair::Pair(Memory memory, std::size_t largest) : memory_(memory), largest_(largest) {
    offpath_init_params_t params{};
    params.struct_size = sizeof params;
    params.threads = OFFPATH_THREADS_SINGLE;
    const offpath_status_t status = offpath_init(&params, &context_);
    if (status == OFFPATH_ERR_UNAVAILABLE) throw NoDevice{};
    check(status, "offpath_init");
    check(offpath_team_world(context_, &team_), "offpath_team_world");
    std::uint32_t size = 0;
    check(offpath_team_rank(team_, &rank_), "offpath_team_rank");
    check(offpath_team_size(team_, &size), "offpath_team_size");
    if (size != 2)
        throw std::runtime_error("there are " + std::to_string(size) + " ranks; start two (mpirun -n 2)");
    peer_ = 1 - rank_;
    for (unsigned char** buffer : {&out_, &in_}) {
        void* address = nullptr;
        if (memory_ == Memory::offpath)
            check(offpath_mem_alloc(context_, largest_, &address), "offpath_mem_alloc");
        else if (posix_memalign(&address, 4096, largest_) != 0)
            throw std::runtime_error("no memory for messages of " + std::to_string(largest_) + " bytes");
        *buffer = static_cast<unsigned char*>(address);
        std::memset(*buffer, 0, largest_);
    }
}

Pair::~Pair() {
    for (unsigned char* buffer : {out_, in_}) {
        if (memory_ == Memory::heap)
            std::free(buffer);
        else if (buffer != nullptr)
            offpath_mem_free(context_, buffer);
    }
    if (context_ != nullptr) offpath_finalize(context_);
}

std::string Pair::back_end() const {
    offpath_back_end_t back_end{};
    offpath_progress_t progress{};
    check(offpath_mem_query(context_, out_, largest_, &back_end, &progress), "offpath_mem_query");
    return offpath_back_end_string(back_end);
}

void Pair::send(const void* data, std::size_t bytes) {
    offpath_request_h request = nullptr;
    check(offpath_send_offload(team_, data, bytes, peer_, kTag, &request), "offpath_send_offload");
    finish(request);
}

void Pair::receive(void* data, std::size_t bytes) {
    offpath_request_h request = nullptr;
    check(offpath_recv_offload(team_, data, bytes, peer_, kTag, &request), "offpath_recv_offload");
    finish(request);
}

void Pair::round_trip(std::size_t bytes) {
    if (first()) send(out_, bytes);
    receive(in_, bytes);
    if (!first()) send(out_, bytes);
}

double Pair::ping_pong(std::size_t bytes, long iterations) {
    round_trip(bytes);
    const double start = now_s();
    for (long i = 0; i < iterations; ++i)
        round_trip(bytes);
    return agreed(now_s() - start);
}

double Pair::stream(std::size_t bytes, int window, long iterations) {
    std::vector<offpath_request_h> requests(static_cast<std::size_t>(window));
    double start = 0;
    for (long i = -1; i < iterations; ++i) {
        if (i == 0) start = now_s();
        for (offpath_request_h& request : requests) {
            if (first())
                check(offpath_send_offload(team_, out_, bytes, peer_, kTag, &request),
                      "offpath_send_offload");
            else
                check(offpath_recv_offload(team_, in_, bytes, peer_, kTag, &request), "offpath_recv_offload");
        }
        for (offpath_request_h request : requests)
            finish(request);
        if (first())
            receive(in_, 1);
        else
            send(out_, 1);
    }
    return agreed(now_s() - start);
}

bool Pair::verified(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        out_[i] = expected(rank_, i);
    std::memset(in_, 0, bytes);
    round_trip(bytes);
    bool right = true;
    for (std::size_t i = 0; i < bytes; ++i)
        right = right && in_[i] == expected(peer_, i);
    // Rank 0 decides for both ranks, so it has to know the other rank's result.
    unsigned char word = right ? 1 : 0;
    if (first()) {
        receive(in_, 1);
        right = right && in_[0] == 1;
    } else {
        out_[0] = word;
        send(out_, 1);
    }
    return agreed(right ? 1.0 : 0.0) != 0.0;
}

double Pair::agreed(double value) {
    if (first()) {
        std::memcpy(out_, &value, sizeof value);
        send(out_, sizeof value);
    } else {
        receive(in_, sizeof value);
        std::memcpy(&value, in_, sizeof value);
    }
    return value;
}

}  // namespace primitives
