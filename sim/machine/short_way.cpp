#include "sim/machine/short_way.h"

#include "rma/direct.h"
#include "sim/machine/cluster.h"
#include "sim/machine/worker.h"

#include <memory>
#include <utility>

namespace offpath::sim {
namespace {

// The flows of ranks have numbers beyond those of workers.
constexpr std::uint64_t ranks_flows = std::uint64_t{1} << 63;

}  // namespace

std::uint64_t ShortWay::bytes_of(std::span<const engine::DirectAccess> requests) {
    std::uint64_t bytes = 0;
    for (const engine::DirectAccess& request : requests)
        bytes += sizeof(rma::direct::Request) + request.operand_bytes();
    return bytes;
}

std::uint64_t ShortWay::answer_bytes_of(std::span<const engine::DirectAccess> requests) {
    std::uint64_t bytes = sizeof(rma::direct::Answer);
    for (const engine::DirectAccess& request : requests)
        if (request.result_bytes() > 0) bytes += sizeof(rma::direct::Answer) + request.result_bytes();
    return bytes;
}

void ShortWay::ask(std::uint32_t rank, Worker& target, std::vector<engine::DirectAccess> requests,
                   Time departs, Completion* answered) {
    const std::uint64_t bytes = bytes_of(requests);
    auto message =
        std::make_unique<Message>(Message{this, rank, &target, std::move(requests), answered, Status::ok});
    const Flow flow{ranks_flows | (std::uint64_t{rank} << 32) | target.number()};
    cluster_.network().send(cluster_.node_of(rank), target.node(), bytes, departs, &ShortWay::reach_target,
                            message.release(), 0, flow);
}

void ShortWay::reach_target(void* object, std::uint64_t) {
    auto* const message = static_cast<Message*>(object);
    message->target->submit(message->way->cluster_.queue().now(),
                            [message] { message->way->perform(*message); });
}

void ShortWay::perform(Message& message) {
    Worker& target = *message.target;
    const Platform::Work& work = target.work();
    target.charge_seconds(work.receive_s +
                          work.receive_byte_s * static_cast<double>(bytes_of(message.requests)));
    const std::uint64_t bytes = answer_bytes_of(message.requests);
    for (engine::DirectAccess& request : message.requests) {
        const std::uint64_t operands = request.operand_bytes();
        request.operands = {cluster_.empty(operands), operands};
        std::span<const std::byte> result;
        const Status status = target.engine().one_sided_at_once(request, result);
        // An update meets a longer one. The product then uses the rank's own proxy, which is not simulated.
        if (is_error(status) && status != Status::unsupported) message.status = status;
    }
    target.charge_seconds(work.send_s + work.send_byte_s * static_cast<double>(bytes));
    const Flow flow{ranks_flows | (std::uint64_t{target.number()} << 32) | message.rank};
    cluster_.network().send(target.node(), cluster_.node_of(message.rank), bytes, target.present(),
                            &ShortWay::reach_rank, &message, 0, flow);
}

void ShortWay::reach_rank(void* object, std::uint64_t) {
    const std::unique_ptr<Message> message(static_cast<Message*>(object));
    (*message->answered)(message->status);
}

}  // namespace offpath::sim
