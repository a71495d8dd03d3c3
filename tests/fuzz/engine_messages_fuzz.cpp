// Messages between proxies. The engine has a rank with work of every kind in progress, and the fuzzer is the
// proxy of the other rank of its team. It knows the job's pass and, where the input says so, the tokens that
// the engine has sent it. Whatever it says, the rank's memory changes only inside the buffers of operations,
// each operation ends at most once, and everything ends when the session is closed.
#include "collectives/collectives.h"
#include "engine/engine.h"
#include "engine/impl.h"

#include "once.h"
#include "played_transport.h"
#include "quiet.h"

#include <array>

namespace {

using namespace offpath;
using namespace offpath::engine;
using fuzz::Input;
using fuzz::Once;
using fuzz::PlayedTransport;
using fuzz::require;

constexpr JobId job{7, 9};
constexpr std::uint64_t team_id = 42, window_id = 3;
constexpr ProxyId self = 1, other = 2;

JobSecret secret() {
    JobSecret made;
    made.fill(std::byte{5});
    return made;
}

// The rank's memory: parts of an arena, with bytes in between that nobody may write.
class Arena final : public memory::HostMemory {
  public:
    Arena() : bytes_(size, filler) {}
    memory::HostRange part(std::size_t bytes) {
        used_ += gap;
        const std::size_t at = used_;
        used_ += bytes;
        require(used_ + gap <= size, "the arena is too small");
        parts_.emplace_back(at, bytes);
        return {0, at, bytes};
    }
    bool gaps_are_whole() const {
        std::size_t at = 0;
        const auto filled = [&](std::size_t end) {
            const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(at);
            // Each byte is the filler if the first one is and each equals the next one.
            return at == end || (*first == filler && std::memcmp(&*first, &*first + 1, end - at - 1) == 0);
        };
        for (const auto& [begin, length] : parts_) {
            if (!filled(begin)) return false;
            at = begin + length;
        }
        return filled(size);
    }

    memory::BackEnd back_end(const memory::HostRange&) const override { return memory::BackEnd::cma; }
    std::byte* direct(const memory::HostRange&, std::uint64_t, std::uint64_t) override { return nullptr; }
    Status read(const memory::HostRange& range, std::uint64_t offset, void* to, std::size_t bytes,
                Completion*) override {
        if (!holds(range, offset, bytes)) return Status::access;
        if (bytes > 0) std::memcpy(to, bytes_.data() + range.address + offset, bytes);
        return Status::ok;
    }
    Status write(const memory::HostRange& range, std::uint64_t offset, const void* from, std::size_t bytes,
                 Completion*) override {
        if (!holds(range, offset, bytes)) return Status::access;
        if (bytes > 0) std::memcpy(bytes_.data() + range.address + offset, from, bytes);
        return Status::ok;
    }
    bool reads_at_once(const memory::HostRange&, std::uint64_t, std::uint64_t) override { return true; }

  private:
    static constexpr std::size_t size = 128 << 10, gap = 64;
    static constexpr std::byte filler{0xa5};

    static bool holds(const memory::HostRange& range, std::uint64_t offset, std::uint64_t bytes) {
        return offset <= range.bytes && bytes <= range.bytes - offset && range.address <= size &&
               range.bytes <= size - range.address;
    }
    std::vector<std::byte> bytes_;
    std::vector<std::pair<std::size_t, std::size_t>> parts_;
    std::size_t used_ = 0;
};

// An engine in the middle of its work.
class Scene {
  public:
    Scene() : transport_(std::make_unique<PlayedTransport>()) {
        const Config config{.chunk_bytes = 4096,
                            .send_bounces = 2,
                            .recv_bounces = 2,
                            .chunks_in_flight = 2,
                            .reduce_tiles = 3,
                            .stored_bytes = 64 << 10,
                            .early_bytes = 64 << 10,
                            .visit_bytes = 64 << 10};
        engine_.emplace(*transport_, self, config, Surroundings{nullptr, 1, false});
        Session* session = nullptr;
        must(engine_->open_session(job, secret(), 0, arena_, &session));
        session_ = session;
        must(engine_->add_proxy(*session, other, std::vector<std::byte>(8, std::byte{2})));
        const Member members[] = {{self, 0}, {other, 1}};
        must(engine_->create_team(*session, team_id, 0, members, &team_));
        must(engine_->create_window(*team_, window_id, arena_.part(4096), false, &window_));
        pass_ = pass_of(secret(), job, other, self);
    }
    ~Scene() {
        for (int calls = 0; !engine_->close_session(session_, Status::canceled); ++calls) {
            require(calls < 1000, "a session does not end");
            turn();
        }
        for (const Once& one : done_)
            require(one.called, "an operation has not ended with its session");
        require(arena_.gaps_are_whole(), "memory beside the buffers was written");
        engine_->close();
        require(transport_->settled(), "a payload was neither fetched nor discarded");
        transport_.reset();
    }

    void work(std::uint8_t which) {
        done_.emplace_back();
        Once& done = done_.back();
        Status status = Status::unsupported;
        switch (which % 8) {
            case 0:
                status = engine_->recv(*team_, arena_.part(9000), 1, 5, &info(), &done);
                break;
            case 1:
                status = engine_->send(*team_, arena_.part(9000), 1, 6, &done);
                break;
            case 2:
                status = engine_->keyed_recv(*team_, arena_.part(9000), 1, MessageKey{1, 2}, &info(), &done);
                break;
            case 3:
                status = engine_->keyed_send(*team_, arena_.part(9000), 1, MessageKey{3, 4}, &done);
                break;
            case 4:
                status = call(rma::OpKind::put, 9000, false, done);
                break;
            case 5:
                status = call(rma::OpKind::get, 9000, true, done);
                break;
            case 6:
                status = start(done);
                break;
            case 7:
                status = engine_->flush_window(*window_, 1, &done);
                break;
        }
        if (status != Status::in_progress) done.called = true;
        turn();
    }
    // A message of the other proxy. Its header and payload are the input's, apart from what `mended` repairs.
    void say(Input& input) {
        constexpr std::array kinds{Kind::eager,
                                   Kind::ready,
                                   Kind::chunk,
                                   Kind::signal,
                                   Kind::request,
                                   Kind::grant,
                                   Kind::finished,
                                   Kind::abort,
                                   Kind::keyed,
                                   Kind::keyed_store,
                                   Kind::broken,
                                   Kind::hello,
                                   Kind::beat,
                                   Kind::rank_gone,
                                   Kind::one_sided,
                                   Kind::one_sided_answer,
                                   Kind::one_sided_bundle};
        constexpr std::array<std::size_t, 17> lengths{56, 72, 24, 48, 64, 32, 16, 48, 72,
                                                      56, 16, 24, 24, 24, 96, 16, 8};
        const std::size_t which = input.below(kinds.size());
        const auto mended = input.take<std::uint8_t>();
        std::vector<std::byte> header = input.bytes(mended & 1 ? lengths[which] : input.below(100));
        header.resize(std::max<std::size_t>(mended & 1 ? lengths[which] : header.size(), sizeof(Kind)));
        put(header, 0, static_cast<std::uint32_t>(kinds[which]));
        if ((mended & 2) != 0 && is_routed(kinds[which])) {
            put(header, 4, sequence_[which]);
            if ((mended & 4) != 0) ++sequence_[which];
            put(header, 8, Route{job.high, job.low, team_id, 1, 0});
            if (kinds[which] == Kind::one_sided) put(header, 40, window_id);
        }
        std::vector<std::byte> payload;
        if ((mended & 16) != 0) make_sensible(kinds[which], header, payload, input);
        if ((mended & 8) != 0 && !tokens_.empty()) put(header, token_at(kinds[which]), token(input));
        if ((mended & 32) != 0) payload = input.bytes(input.below(200));
        std::vector<std::byte> message(sizeof(Stamp));
        put(message, 0, Stamp{other, (mended & 64) != 0 ? pass_ + 1 : pass_});
        message.insert(message.end(), header.begin(), header.end());
        transport_->say(message, payload, (mended & 128) != 0);
        turn();
    }
    void lose() {
        transport_->lose_all();
        turn();
    }
    void turn() {
        for (int i = 0; i < 4; ++i) {
            transport_->progress();
            engine_->advance();
        }
        // Every aligned word of what the engine sends may be a token.
        for (; !transport_->sent.empty(); transport_->sent.pop_front()) {
            const std::vector<std::byte>& header = transport_->sent.front().header;
            for (std::size_t at = sizeof(Stamp); at + 8 <= header.size(); at += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, header.data() + at, sizeof word);
                if (word >> 32 != 0 && std::ranges::find(tokens_, word) == tokens_.end())
                    tokens_.push_back(word);
            }
        }
    }

  private:
    static void must(Status status) { require(status == Status::ok, "the scene cannot be set"); }
    template <typename T>
    static void put(std::vector<std::byte>& bytes, std::size_t at, const T& value) {
        if (at + sizeof value <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    // Names what is in progress here, in sizes that may fit.
    static void make_sensible(Kind kind, std::vector<std::byte>& header, std::vector<std::byte>& payload,
                              Input& input) {
        const auto carry = [&](std::uint64_t count) { payload = input.payload(count); };
        const std::uint64_t bytes = input.below(9100), small = input.below(5000);
        switch (kind) {
            case Kind::request:
                put(header, 40, std::uint64_t{5});
                put(header, 48, input.below(2) == 0 ? bytes : small);
                put(header, 56, std::uint64_t{input.below(3)});
                carry(input.below(2) == 0 ? 0 : small);
                break;
            case Kind::keyed:
                put(header, 40, MessageKey{1, 2});
                put(header, 56, bytes);
                put(header, 64, std::uint64_t{1} + input.below(3));
                break;
            case Kind::keyed_store:
                put(header, 40, MessageKey{3, 4});
                break;
            case Kind::eager:
                put(header, 40, std::uint64_t{0});
                put(header, 48, small);
                carry(small);
                break;
            case Kind::ready:
                put(header, 40, std::uint64_t{0});
                put(header, 48, input.below(2) == 0 ? std::uint64_t{5000} : bytes);
                put(header, 64, std::uint64_t{4096} + input.below(8192));
                break;
            case Kind::chunk:
                put(header, 16, std::uint64_t{input.below(4)} * 4096 + (input.below(4) == 0 ? small : 0));
                carry(input.below(2) == 0 ? 4096 : small);
                put(header, 4, static_cast<std::uint32_t>(payload.size()));
                break;
            case Kind::grant:
                put(header, 4, std::uint32_t{4096});
                put(header, 16, std::uint64_t{7});
                put(header, 24, input.below(2) == 0 ? std::uint64_t{9000} : bytes);
                break;
            case Kind::one_sided:
                put(header, 48, small);
                put(header, 56, bytes);
                put(header, 72, std::uint64_t{input.below(2)});
                put(header, 80, std::uint64_t{input.below(2)});
                put(header, 88, static_cast<std::uint8_t>(1 + input.below(8)));
                put(header, 89, static_cast<std::uint8_t>(input.below(14)));
                put(header, 90, static_cast<std::uint8_t>(input.below(14)));
                put(header, 91, static_cast<std::uint8_t>(input.below(2)));
                put(header, 92, static_cast<std::uint32_t>(input.below(3)));
                carry(std::min<std::uint64_t>(bytes, 4096));
                break;
            case Kind::rank_gone:
            case Kind::beat:
                put(header, 4, static_cast<std::uint32_t>(input.below(3)));
                put(header, 8, job);
                break;
            default:
                break;
        }
    }
    static std::size_t token_at(Kind kind) {
        switch (kind) {
            case Kind::ready:
                return 56;
            case Kind::request:
                return 56;
            case Kind::keyed:
                return 64;
            case Kind::one_sided:
                return 64;
            default:
                return 8;
        }
    }
    std::uint64_t token(Input& input) const {
        return tokens_[tokens_.size() - 1 - input.below(std::min<std::size_t>(tokens_.size(), 8))];
    }
    MessageInfo& info() { return infos_.emplace_back(); }
    Status call(rma::OpKind kind, std::size_t bytes, bool fetches, Once& done) {
        OneSidedCall made;
        made.target = 1;
        made.bytes = bytes;
        made.kind = kind;
        (fetches ? made.result : made.origin) = arena_.part(bytes);
        return engine_->one_sided(*window_, std::move(made), &done);
    }
    Status start(Once& done) {
        if (plan_ == nullptr) plan_ = std::make_unique<Plan>(collectives::alltoall_linear({0, 2}, 5000, 0));
        const memory::HostRange buffers[] = {arena_.part(10000), arena_.part(10000)};
        return engine_->start(*team_, *plan_, instances_++, buffers, &done);
    }

    Arena arena_;
    std::unique_ptr<PlayedTransport> transport_;
    std::unique_ptr<Plan> plan_;
    std::deque<Once> done_;
    std::deque<MessageInfo> infos_;
    std::optional<Engine> engine_;
    Session* session_ = nullptr;
    Team* team_ = nullptr;
    Window* window_ = nullptr;
    std::uint64_t pass_ = 0;
    std::uint32_t instances_ = 0;
    std::array<std::uint32_t, 17> sequence_{};
    std::vector<std::uint64_t> tokens_;  // the latest last
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::be_quiet();
    Input input(data, size);
    Scene scene;
    for (int works = 0; !input.empty();) {
        const auto step = input.take<std::uint8_t>();
        if (step < 64 && works < 6) {
            scene.work(step);
            ++works;
        } else if (step == 255) {
            scene.lose();
        } else {
            scene.say(input);
        }
    }
    return 0;
}
