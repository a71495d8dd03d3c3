// What a transport's messages take of cores, and what sockets take at once.
#include "sim/machine/cluster.h"
#include "sim/machine/sim_transport.h"
#include "sim/machine/worker.h"

namespace offpath::sim {

bool SimTransport::is_library_over_sockets() const {
    return worker_.kind() == Worker::Kind::library && cluster_.platform().protocol == Protocol::stream;
}

bool SimTransport::shares_memory_with(const SimTransport& other) const {
    return is_library_over_sockets() && other.is_library_over_sockets() &&
           worker_.node() == other.worker_.node();
}

double SimTransport::sending_s(const SimTransport& to, std::uint64_t bytes) const {
    if (shares_memory_with(to)) return 0;
    return worker_.work().send_s + worker_.work().send_byte_s * static_cast<double>(bytes);
}

double SimTransport::receiving_s(const SimTransport& from, std::uint64_t bytes) const {
    if (shares_memory_with(from)) return static_cast<double>(bytes) / worker_.work().copy_Bps;
    return worker_.work().receive_s + worker_.work().receive_byte_s * static_cast<double>(bytes);
}

void SimTransport::end_push(Completion* completion) {
    Arrival* drained = new_arrival(Arrival::Kind::drained);
    drained->completion = completion;
    inbox_.push_back(drained);
    worker_.wake();
}

}  // namespace offpath::sim
