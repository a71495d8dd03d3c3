#include "engine/reductions/atomic_update.h"

#include "schedule/op.h"

#include <atomic>
#include <cstring>

namespace offpath::engine {

namespace {

using schedule::DataType;
using schedule::Reduction;

bool is_integer(DataType type) {
    return type >= DataType::int8 && type <= DataType::uint64;
}

// False: no single atomic instruction does this reduction.
template <typename Word>
bool change(const std::atomic_ref<Word>& word, Reduction reduction, Word operand, Word& was) {
    switch (reduction) {
        case Reduction::sum:
            was = word.fetch_add(operand);
            return true;
        case Reduction::band:
            was = word.fetch_and(operand);
            return true;
        case Reduction::bor:
            was = word.fetch_or(operand);
            return true;
        case Reduction::bxor:
            was = word.fetch_xor(operand);
            return true;
        default:
            return false;
    }
}

template <typename Word>
bool update(const rma::Access& access, bool integer, const std::byte* operands, std::byte* target,
            std::byte* former) {
    Word operand{}, was{};
    if (access.operand_bytes() > 0) std::memcpy(&operand, operands, sizeof operand);
    const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target));
    if (access.kind == rma::OpKind::compare_swap) {
        std::memcpy(&was, operands + sizeof(Word), sizeof was);
        word.compare_exchange_strong(was, operand);
    } else if (access.reduction == rma::replace) {
        was = word.exchange(operand);
    } else if (access.reduction == rma::no_op) {
        was = word.load();
    } else if (!integer || !change(word, static_cast<Reduction>(access.reduction), operand, was)) {
        return false;
    }
    if (former != nullptr) std::memcpy(former, &was, sizeof was);
    return true;
}

}  // namespace

bool update_atomically(const rma::Access& access, const std::byte* operands, std::byte* target,
                       std::byte* former) {
    const auto type = static_cast<DataType>(access.type);
    const std::uint64_t bytes = access.bytes;
    if (bytes != size_of(type) || reinterpret_cast<std::uintptr_t>(target) % bytes != 0) return false;
    if (bytes == sizeof(std::uint32_t))
        return update<std::uint32_t>(access, is_integer(type), operands, target, former);
    if (bytes == sizeof(std::uint64_t))
        return update<std::uint64_t>(access, is_integer(type), operands, target, former);
    return false;
}

void store_at_once(std::byte* to, std::span<const std::byte> from) {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    const auto whole = [&]<typename Word>(Word word) {
        std::memcpy(&word, from.data(), sizeof word);
        std::atomic_ref(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
    };
    if (from.size() == sizeof(std::uint64_t) && address % sizeof(std::uint64_t) == 0)
        return whole(std::uint64_t{});
    if (from.size() == sizeof(std::uint32_t) && address % sizeof(std::uint32_t) == 0)
        return whole(std::uint32_t{});
    std::memcpy(to, from.data(), from.size());
}

}  // namespace offpath::engine
