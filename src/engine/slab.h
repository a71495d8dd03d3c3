// Slab: objects with stable addresses, named by tokens (index and generation) that other processes may hold.
// A token of an object that was given back is recognised as stale. No allocation once it has grown to its
// working size. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace offpath::engine {

template <typename T>
class Slab {
  public:
    // T has members `std::uint64_t token` and `void reset()`.
    T* take() {
        std::uint32_t index;
        if (free_.empty()) {
            index = static_cast<std::uint32_t>(cells_.size());
            cells_.emplace_back();
        } else {
            index = free_.back();
            free_.pop_back();
        }
        Cell& cell = cells_[index];
        cell.used = true;
        cell.object.reset();
        cell.object.token = std::uint64_t{cell.generation} << 32 | index;
        return &cell.object;
    }
    void give_back(T* object) {
        const auto index = static_cast<std::uint32_t>(object->token);
        Cell& cell = cells_[index];
        cell.used = false;
        if (++cell.generation == 0) cell.generation = 1;
        free_.push_back(index);
    }
    T* find(std::uint64_t token) {
        const auto index = static_cast<std::uint32_t>(token);
        if (index >= cells_.size()) return nullptr;
        Cell& cell = cells_[index];
        return cell.used && cell.generation == token >> 32 ? &cell.object : nullptr;
    }
    template <typename Visit>
    void for_each(Visit&& visit) {
        for (Cell& cell : cells_) {
            if (cell.used) visit(cell.object);
        }
    }

  private:
    struct Cell {
        T object;
        std::uint32_t generation = 1;
        bool used = false;
    };
    std::deque<Cell> cells_;
    std::vector<std::uint32_t> free_;
};

}  // namespace offpath::engine
