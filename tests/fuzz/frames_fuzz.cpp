// The byte stream of a TCP connection, in pieces that the input cuts. The input decides which large payloads
// are fetched, discarded or left. No frame is longer than what came, and each fetched payload ends once.
#include "input.h"
#include "once.h"
#include "transport/tcp/address.h"
#include "transport/tcp/receiver.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>

namespace {

using namespace offpath;
using namespace offpath::transport::tcp;
using fuzz::Input;
using fuzz::require;

struct Payload : fuzz::Once {
    std::vector<std::byte> to;
};

class Client final : public ReceiverClient {
  public:
    explicit Client(std::uint8_t choices) : choices_(choices) {}

    bool on_frame(const Prefix& prefix, std::span<const std::byte> header) override {
        require(header.size() == prefix.header, "a header of another length");
        return prefix.kind == FrameKind::welcome;
    }
    void on_message(const transport::Incoming& message) override {
        std::size_t sum = 0;
        for (const std::byte byte : message.header)
            sum += std::to_integer<std::size_t>(byte);
        if (message.data != nullptr)
            for (std::size_t i = 0; i < message.bytes; ++i)
                sum += std::to_integer<std::size_t>(message.data[i]);
        require(sum <= 255 * (message.header.size() + message.bytes), "bytes that are none");
        if (message.rendezvous == nullptr) return;
        auto* const arrival = static_cast<Arrival*>(message.rendezvous);
        choices_ = static_cast<std::uint8_t>(choices_ * 5 + 1);
        if (choices_ % 3 == 0 || message.bytes > most_payload) {
            receiver->discard(*arrival);
        } else if (choices_ % 3 == 1) {
            Payload& one = done.emplace_back();
            one.to.resize(message.bytes);
            receiver->fetch(*arrival, one.to.data(), &one);
        } else {
            waiting_.push_back(arrival);
        }
    }
    void over(Completion* completion, Status status) override { (*completion)(status); }
    Arrival* new_arrival() override { return &arrivals_.emplace_back(); }
    void end_arrival(Arrival* arrival) override { *arrival = Arrival{}; }
    PipeCopy& pipe() override { return pipe_; }
    std::span<std::byte> scratch() override { return scratch_; }

    // Takes the payloads that were left.
    void take_the_rest() {
        while (!waiting_.empty()) {
            Arrival* const arrival = waiting_.front();
            waiting_.pop_front();
            Payload& one = done.emplace_back();
            if (arrival->bytes > most_payload) {
                one.called = true;
                if (arrival->from != nullptr) receiver->discard(*arrival);
            } else if (arrival->from != nullptr) {
                one.to.resize(arrival->bytes);
                receiver->fetch(*arrival, one.to.data(), &one);
            } else {
                // Complete, or cut off by the end of the connection.
                one.called = true;
                if (arrival->status == Status::ok)
                    one.to.assign(arrival->own.get(), arrival->own.get() + arrival->bytes);
                end_arrival(arrival);
            }
        }
    }
    Receiver* receiver = nullptr;
    std::deque<Payload> done;

  private:
    static constexpr std::size_t most_payload = 1 << 20;

    std::uint8_t choices_;
    std::deque<Arrival> arrivals_;
    std::deque<Arrival*> waiting_;
    PipeCopy pipe_;
    std::array<std::byte, 4096> scratch_{};
};

void as_stream(Input& input) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair");
    const auto choices = input.take<std::uint8_t>();
    {
        Client client(choices);
        Receiver receiver(client);
        client.receiver = &receiver;
        receiver.connect(ends[0]);
        Status status = Status::ok;
        while (!input.empty() && status == Status::ok) {
            // Half of the pieces are frames whose prefix is right.
            const auto kind = input.take<std::uint8_t>();
            std::vector<std::byte> piece;
            if (kind % 2 == 0) {
                const std::size_t header = input.below(129), payload = input.below(20000);
                piece.resize(prefix_bytes);
                encode_prefix({kind % 32 == 0 ? FrameKind::welcome : FrameKind::message, header, payload},
                              piece);
                auto rest = kind % 4 == 0 ? input.payload(header + payload) : input.bytes(header + payload);
                if (kind % 4 == 0 && payload > inline_bytes) rest.resize(rest.size() + trailer_bytes);
                piece.insert(piece.end(), rest.begin(), rest.end());
            } else {
                piece = input.bytes(1 + input.below(200));
            }
            for (std::size_t at = 0; at < piece.size() && status == Status::ok;) {
                const ssize_t written = write(ends[1], piece.data() + at, piece.size() - at);
                if (written > 0) at += static_cast<std::size_t>(written);
                receiver.became_readable(false);
                unsigned work = 1;
                while (status == Status::ok && work > 0) {
                    work = 0;
                    status = receiver.receive(work);
                }
            }
            if (kind % 8 == 3) client.take_the_rest();
        }
        receiver.close();
        client.take_the_rest();
        for (const Payload& one : client.done)
            require(one.called, "a fetched payload does not end");
    }
    close(ends[0]);
    close(ends[1]);
}

void as_address(Input& input) {
    const auto bytes = input.bytes(input.below(400));
    Address address;
    std::string problem;
    if (decode(bytes, address, problem) != Status::ok) {
        require(!problem.empty(), "an address was refused without a reason");
        return;
    }
    require(encode(address) == bytes, "an address has two forms");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    if (input.take<std::uint8_t>() % 8 == 0) {
        as_address(input);
    } else {
        as_stream(input);
    }
    return 0;
}
