// Slab: objects with stable addresses, named by tokens that other processes may hold. A token has 24 bits of
// index and 40 random bits, which are drawn anew for each use. Tokens therefore cannot be guessed, and the
// token of an object that was given back is recognised as stale. No allocation once the slab has grown to its
// working size. Threads: one.
#pragma once

#include "base/random_numbers.h"

#include <cstdint>
#include <deque>
#include <new>
#include <vector>

namespace offpath::engine {

template <typename T>
class Slab {
  public:
    // `random` must outlive it.
    explicit Slab(RandomNumbers& random) : random_(random) {}

    // T has members `std::uint64_t token` and `void reset()`. Throws std::bad_alloc.
    T* take() {
        std::uint32_t index;
        if (free_.empty()) {
            if (cells_.size() > index_mask) throw std::bad_alloc();
            index = static_cast<std::uint32_t>(cells_.size());
            cells_.emplace_back();
        } else {
            index = free_.back();
            free_.pop_back();
        }
        Cell& cell = cells_[index];
        cell.used = true;
        cell.object.reset();
        cell.object.token = draw() | index;
        return &cell.object;
    }
    void give_back(T* object) {
        const auto index = static_cast<std::uint32_t>(object->token & index_mask);
        cells_[index].used = false;
        free_.push_back(index);
    }
    T* find(std::uint64_t token) {
        const auto index = static_cast<std::uint32_t>(token & index_mask);
        if (index >= cells_.size()) return nullptr;
        Cell& cell = cells_[index];
        return cell.used && cell.object.token == token ? &cell.object : nullptr;
    }
    // Frees the memory if no object is in use.
    void release_if_unused() {
        if (free_.size() != cells_.size()) return;
        std::deque<Cell>().swap(cells_);
        std::vector<std::uint32_t>().swap(free_);
    }
    std::size_t size() const { return cells_.size(); }  // in use or not
    template <typename Visit>
    void for_each(Visit&& visit) {
        for (Cell& cell : cells_) {
            if (cell.used) visit(cell.object);
        }
    }

  private:
    static constexpr std::uint64_t index_mask = 0xff'ffff;

    // Never 0, because token 0 means no object.
    std::uint64_t draw() {
        std::uint64_t drawn = 0;
        while (drawn == 0)
            drawn = random_.next() & ~index_mask;
        return drawn;
    }

    struct Cell {
        T object;
        bool used = false;
    };
    RandomNumbers& random_;
    std::deque<Cell> cells_;
    std::vector<std::uint32_t> free_;
};

}  // namespace offpath::engine
