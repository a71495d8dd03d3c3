// Random programs of point-to-point messages: many in flight, sizes around the switch-over, several
// communicators, wildcards, every way to send and to receive. The results are checked against MPI's rules of
// matching (MPI 3.1, 3.5). Every message arrives once, whole and unchanged. Of two messages of one source
// that match a receive, the older one is received. Of two receives that match a message, the older one gets
// it.
//
// p2p_random_test [SEED [ROUNDS]]: the seed of a failure repeats it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "check.h"

namespace {

constexpr int shared_tag = 4;  // of all senders; the others are one sender's in a round

struct Sent {
    int source, dest, comm, tag;
    std::size_t bytes;
    std::uint32_t id;
    int order = 0;      // among those of one source, destination and communicator
    int taken_by = -1;  // place of its receive in the order of posting
};

std::uint8_t byte_of(std::uint32_t id, std::size_t i) {
    return static_cast<std::uint8_t>((id * 2654435761U + i * 40503U + (i >> 8) * 97U) >> 5);
}

// Bytes with gaps, so that they must be packed. They are not ints, because a message of single bytes may end
// inside one.
MPI_Datatype gaps_type() {
    static MPI_Datatype type = [] {
        MPI_Datatype made, resized;
        PMPI_Type_contiguous(4, MPI_BYTE, &made);
        PMPI_Type_create_resized(made, 0, 12, &resized);
        PMPI_Type_commit(&resized);
        PMPI_Type_free(&made);
        return resized;
    }();
    return type;
}

// Memory for a message, laid out as its datatype says.
class Buffer {
  public:
    Buffer(std::size_t bytes, bool with_gaps)
        : bytes_(bytes), gaps_(with_gaps && bytes % 4 == 0 && bytes > 0) {
        memory_.assign((gaps_ ? bytes * 3 : bytes) + 8, 0xEE);
    }
    std::uint8_t& operator[](std::size_t i) { return memory_[gaps_ ? i / 4 * 12 + i % 4 : i]; }
    void* data() { return memory_.data(); }
    int count() const { return static_cast<int>(gaps_ ? bytes_ / 4 : bytes_); }
    MPI_Datatype type() const { return gaps_ ? gaps_type() : MPI_BYTE; }
    std::size_t bytes() const { return bytes_; }
    // Bytes that belong to no element are unchanged.
    bool gaps_untouched() const {
        for (std::size_t i = 0; gaps_ && i < bytes_ * 3; ++i) {
            if (i % 12 >= 4 && memory_[i] != 0xEE) return false;
        }
        return std::all_of(memory_.end() - 8, memory_.end(), [](std::uint8_t b) { return b == 0xEE; });
    }

  private:
    std::size_t bytes_;
    bool gaps_;
    std::vector<std::uint8_t> memory_;
};

struct Receive {
    int comm, source, tag;
    std::unique_ptr<Buffer> buffer;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status{};
};

class Round {
  public:
    Round(std::uint32_t seed, const std::vector<MPI_Comm>& comms)
        : common_(seed),
          own_(seed * 31 + static_cast<unsigned>(check::rank_of(MPI_COMM_WORLD))),
          seed_(seed),
          comms_(comms),
          rank_(check::rank_of(MPI_COMM_WORLD)),
          size_(check::size_of(MPI_COMM_WORLD)) {
        plan();
    }

    void run() {
        const bool receives_first = common_() % 2 != 0;
        if (receives_first) post_all();
        if (common_() % 2 != 0) PMPI_Barrier(MPI_COMM_WORLD);
        send_all();
        if (!receives_first) {
            if (common_() % 2 != 0) PMPI_Barrier(MPI_COMM_WORLD);
            receive_all();
        }
        end_sends();
        end_receives();
        check_matching();
    }

  private:
    std::size_t pick_size() {
        static const std::size_t sizes[] = {0,    1,    7,    60,   61,    62,    64, 1000, 2047,
                                            4095, 4096, 4097, 5000, 12288, 40000, 61, 8,    100004};
        return sizes[common_() % std::size(sizes)];
    }

    // The plan is the same on every rank.
    void plan() {
        std::uint32_t id = seed_ * 7919;
        for (std::size_t comm = 0; comm < comms_.size(); ++comm) {
            for (int source = 0; source < size_; ++source) {
                for (int dest = 0; dest < size_; ++dest) {
                    const unsigned count = common_() % 6;
                    for (unsigned i = 0; i < count; ++i) {
                        const int tag = common_() % 3 == 0 ? shared_tag : source % shared_tag;
                        all_.push_back({source, dest, static_cast<int>(comm), tag, pick_size(), id++,
                                        static_cast<int>(i)});
                    }
                }
            }
        }
        for (Sent& message : all_) {
            if (message.dest == rank_) mine_.push_back(&message);
        }
        plan_receives();
    }

    bool other_source_uses(const Sent& message) const {
        return std::any_of(mine_.begin(), mine_.end(), [&](const Sent* other) {
            return other->comm == message.comm && other->tag == message.tag &&
                   other->source != message.source;
        });
    }

    // Plans one receive for each message. A wildcard is used only if it cannot take a message that another
    // receive needs.
    void plan_receives() {
        std::vector<std::vector<int>> any(comms_.size(), std::vector<int>(static_cast<std::size_t>(size_)));
        for (auto& comm : any) {
            for (int& tag : comm)
                tag = own_() % 4 == 0 ? 1 : 0;
        }
        const bool everything_wild = own_() % 5 == 0;
        std::vector<const Sent*> order(mine_.begin(), mine_.end());
        // Any order is right that keeps the order of each source and communicator.
        std::vector<std::size_t> key(order.size());
        std::shuffle(order.begin(), order.end(), own_);
        std::vector<std::pair<std::pair<int, int>, std::vector<const Sent*>>> lanes;
        for (const Sent* message : mine_) {
            const std::pair<int, int> lane{message->comm, message->source};
            auto found = std::find_if(lanes.begin(), lanes.end(), [&](auto& l) { return l.first == lane; });
            if (found == lanes.end()) found = lanes.insert(lanes.end(), {lane, {}});
            found->second.push_back(message);
        }
        std::vector<std::size_t> next(lanes.size(), 0);
        std::vector<Receive> late;
        for (const Sent* slot : order) {
            const std::pair<int, int> lane{slot->comm, slot->source};
            const auto at = static_cast<std::size_t>(
                std::find_if(lanes.begin(), lanes.end(), [&](auto& l) { return l.first == lane; }) -
                lanes.begin());
            const Sent& message = *lanes[at].second[next[at]++];
            Receive receive{message.comm, message.source, message.tag, nullptr};
            std::size_t capacity = message.bytes;
            const bool only_here = !other_source_uses(message);
            const bool tag_wild =
                any[static_cast<std::size_t>(message.comm)][static_cast<std::size_t>(message.source)] != 0;
            if (everything_wild) {
                receive.source = MPI_ANY_SOURCE;
                receive.tag = MPI_ANY_TAG;
                capacity = largest(message.comm, -1, -1);
            } else if (tag_wild) {
                receive.tag = MPI_ANY_TAG;  // all of this source
                capacity = largest(message.comm, message.source, -1);
            } else if (only_here && own_() % 3 == 0 && !some_tag_wild(any, message.comm)) {
                receive.source = MPI_ANY_SOURCE;
            }
            capacity += own_() % 4 == 0 ? own_() % 6000 : 0;
            const bool gaps = capacity == message.bytes && own_() % 4 == 0;
            receive.buffer = std::make_unique<Buffer>(capacity, gaps);
            receives_.push_back(std::move(receive));
        }
    }
    static bool some_tag_wild(const std::vector<std::vector<int>>& any, int comm) {
        const auto& row = any[static_cast<std::size_t>(comm)];
        return std::find(row.begin(), row.end(), 1) != row.end();
    }
    std::size_t largest(int comm, int source, int tag) const {
        std::size_t most = 0;
        for (const Sent* m : mine_) {
            if (m->comm == comm && (source < 0 || m->source == source) && (tag < 0 || m->tag == tag))
                most = std::max(most, m->bytes);
        }
        return most;
    }

    MPI_Comm comm_of(int index) const { return comms_[static_cast<std::size_t>(index)]; }

    void post(Receive& r) {
        if (own_() % 5 == 0) {
            MPI_Recv_init(r.buffer->data(), r.buffer->count(), r.buffer->type(), r.source, r.tag,
                          comm_of(r.comm), &r.request);
            MPI_Start(&r.request);
        } else {
            MPI_Irecv(r.buffer->data(), r.buffer->count(), r.buffer->type(), r.source, r.tag, comm_of(r.comm),
                      &r.request);
        }
    }
    void post_all() {
        for (Receive& r : receives_)
            post(r);
    }

    // All messages have been sent, so any way to receive works.
    void receive_all() {
        for (Receive& r : receives_) {
            const MPI_Comm comm = comm_of(r.comm);
            Buffer& b = *r.buffer;
            int flag = 0;
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status probed;
            switch (own_() % 8) {
                case 0:
                    MPI_Recv(b.data(), b.count(), b.type(), r.source, r.tag, comm, &r.status);
                    break;
                case 1:
                    MPI_Mprobe(r.source, r.tag, comm, &message, &probed);
                    MPI_Mrecv(b.data(), b.count(), b.type(), &message, &r.status);
                    check_probe(probed, r.status);
                    break;
                case 2:
                    while (flag == 0)
                        MPI_Improbe(r.source, r.tag, comm, &flag, &message, &probed);
                    MPI_Imrecv(b.data(), b.count(), b.type(), &message, &r.request);
                    break;
                case 3:
                    MPI_Probe(r.source, r.tag, comm, &probed);
                    MPI_Recv(b.data(), b.count(), b.type(), probed.MPI_SOURCE, probed.MPI_TAG, comm,
                             &r.status);
                    check_probe(probed, r.status);
                    break;
                case 4:
                    while (flag == 0)
                        MPI_Iprobe(r.source, r.tag, comm, &flag, &probed);
                    post(r);
                    break;
                default:
                    post(r);
                    break;
            }
        }
    }
    static void check_probe(const MPI_Status& probed, const MPI_Status& received) {
        int expected = 0, got = 0;
        PMPI_Get_count(&probed, MPI_BYTE, &expected);
        PMPI_Get_count(&received, MPI_BYTE, &got);
        check::that(
            expected == got && probed.MPI_SOURCE == received.MPI_SOURCE && probed.MPI_TAG == received.MPI_TAG,
            "a probe told of {} bytes from {}, tag {}; received were {} from {}, tag {}", expected,
            probed.MPI_SOURCE, probed.MPI_TAG, got, received.MPI_SOURCE, received.MPI_TAG);
    }

    void send_all() {
        for (const Sent& message : all_) {
            if (message.source != rank_) continue;
            auto buffer = std::make_unique<Buffer>(message.bytes, own_() % 4 == 0);
            for (std::size_t i = 0; i < message.bytes; ++i)
                (*buffer)[i] = byte_of(message.id, i);
            const MPI_Comm comm = comm_of(message.comm);
            MPI_Request request = MPI_REQUEST_NULL;
            void* data = buffer->data();
            const int count = buffer->count();
            switch (own_() % 6) {
                case 0:
                    MPI_Issend(data, count, buffer->type(), message.dest, message.tag, comm, &request);
                    break;
                case 1:
                    MPI_Send_init(data, count, buffer->type(), message.dest, message.tag, comm, &request);
                    MPI_Start(&request);
                    break;
                default:
                    MPI_Isend(data, count, buffer->type(), message.dest, message.tag, comm, &request);
                    break;
            }
            sends_.push_back(request);
            out_.push_back(std::move(buffer));
        }
    }

    // Completes all requests of one kind in one of the ways.
    void complete(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses) {
        const int count = static_cast<int>(requests.size());
        statuses.resize(requests.size());
        std::vector<int> indices(requests.size() + 1);
        std::vector<MPI_Status> some(requests.size() + 1);
        std::size_t left = requests.size();
        for (MPI_Request request : requests)
            left -= request == MPI_REQUEST_NULL ? 1 : 0;
        int index = 0, flag = 0, done = 0;
        switch (own_() % 6) {
            case 0:
                MPI_Waitall(count, requests.data(), statuses.data());
                break;
            case 1:
                for (; left > 0; --left) {
                    MPI_Waitany(count, requests.data(), &index, some.data());
                    statuses[static_cast<std::size_t>(index)] = some[0];
                }
                break;
            case 2:
                while (left > 0) {
                    MPI_Waitsome(count, requests.data(), &done, indices.data(), some.data());
                    for (int i = 0; i < done; ++i)
                        statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] =
                            some[static_cast<std::size_t>(i)];
                    left -= static_cast<std::size_t>(done);
                }
                break;
            case 3:
                while (flag == 0)
                    MPI_Testall(count, requests.data(), &flag, statuses.data());
                break;
            case 4:
                for (std::size_t i = 0; i < requests.size(); ++i) {
                    if (requests[i] == MPI_REQUEST_NULL) continue;
                    for (flag = 0; flag == 0;)
                        MPI_Test(&requests[i], &flag, &statuses[i]);
                }
                break;
            default:
                for (std::size_t i = requests.size(); i-- > 0;) {
                    if (requests[i] == MPI_REQUEST_NULL) continue;
                    for (flag = 0; flag == 0;)
                        MPI_Request_get_status(requests[i], &flag, &some[0]);
                    MPI_Wait(&requests[i], &statuses[i]);
                }
                break;
        }
        for (MPI_Request& request : requests) {
            if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);  // persistent
        }
    }
    void end_sends() {
        if (own_() % 2 != 0) end_receives();
        std::vector<MPI_Status> statuses;
        complete(sends_, statuses);
    }
    void end_receives() {
        std::vector<MPI_Request> requests;
        for (Receive& r : receives_)
            requests.push_back(r.request);
        std::vector<MPI_Status> statuses;
        complete(requests, statuses);
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            if (receives_[i].request != MPI_REQUEST_NULL) receives_[i].status = statuses[i];
            receives_[i].request = MPI_REQUEST_NULL;
        }
    }

    Sent* identify(Receive& r) {
        int count = 0;
        PMPI_Get_count(&r.status, MPI_BYTE, &count);
        for (Sent* m : mine_) {
            if (m->taken_by >= 0 || m->comm != r.comm || m->source != r.status.MPI_SOURCE ||
                m->tag != r.status.MPI_TAG || static_cast<int>(m->bytes) != count ||
                m->bytes > r.buffer->bytes())
                continue;
            bool same = true;
            for (std::size_t i = 0; same && i < m->bytes; ++i)
                same = (*r.buffer)[i] == byte_of(m->id, i);
            if (same) return m;
        }
        check::fail(fmt::format(
            "seed {}: a receive from {}, tag {}, room for {} bytes, got {} bytes from {}, tag {}, which "
            "nobody sent",
            seed_, r.source, r.tag, r.buffer->bytes(), count, r.status.MPI_SOURCE, r.status.MPI_TAG));
        return nullptr;
    }

    static bool fits(const Receive& r, const Sent& m) {
        return r.comm == m.comm && (r.source == MPI_ANY_SOURCE || r.source == m.source) &&
               (r.tag == MPI_ANY_TAG || r.tag == m.tag);
    }

    void check_matching() {
        std::vector<Sent*> got(receives_.size());
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            got[i] = identify(receives_[i]);
            if (got[i] == nullptr) continue;
            got[i]->taken_by = static_cast<int>(i);
            for (std::size_t b = got[i]->bytes; b < receives_[i].buffer->bytes(); ++b) {
                if ((*receives_[i].buffer)[b] == 0xEE) continue;
                check::fail(fmt::format("seed {}: byte {} behind a message of {} was written", seed_, b,
                                        got[i]->bytes));
                break;
            }
            check::that(receives_[i].buffer->gaps_untouched(), "seed {}: a gap was written", seed_);
        }
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            if (got[i] == nullptr) continue;
            for (const Sent* older : mine_) {
                if (older->comm != got[i]->comm || older->source != got[i]->source ||
                    older->order >= got[i]->order || !fits(receives_[i], *older))
                    continue;
                check::that(older->taken_by < static_cast<int>(i),
                            "seed {}: receive {} got message {} of rank {}, but the older {} went to {}",
                            seed_, i, got[i]->order, older->source, older->order, older->taken_by);
            }
            for (std::size_t earlier = 0; earlier < i; ++earlier) {
                if (got[earlier] == nullptr || !fits(receives_[earlier], *got[i])) continue;
                check::that(got[earlier]->source != got[i]->source || got[earlier]->order < got[i]->order,
                            "seed {}: receive {} was passed over for {}", seed_, earlier, i);
            }
        }
    }

    std::mt19937 common_, own_;
    const std::uint32_t seed_;
    const std::vector<MPI_Comm>& comms_;
    const int rank_, size_;
    std::vector<Sent> all_;
    std::vector<Sent*> mine_;
    std::vector<Receive> receives_;
    std::vector<MPI_Request> sends_;
    std::vector<std::unique_ptr<Buffer>> out_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const auto seed = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1);
    const int rounds = argc > 2 ? std::atoi(argv[2]) : std::max(5, 60 / check::size_of(MPI_COMM_WORLD));
    std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
    MPI_Comm reversed, copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank_of(MPI_COMM_WORLD), &reversed);
    comms.push_back(copy);
    for (int i = 0; i < rounds && check::total_failures() == 0; ++i)
        Round(seed + static_cast<std::uint32_t>(i), comms).run();
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reversed);
    return check::finish();
}
