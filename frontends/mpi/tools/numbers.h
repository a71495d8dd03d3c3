// Numbers and handles of MPI_T: the host's MPI has variables and categories of its own, and offpath's come
// after those that it has when a tool first asks. Numbers never change, so what the host's MPI adds later,
// for instance in MPI_Init, comes after offpath's.
//
// The calls of MPI_T are independent of MPI_Init: they work before it, after MPI_Finalize and without a
// daemon. Threads: any.
#pragma once

#include <mpi.h>

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

namespace offpath::mpi::tools {

class Numbers {
  public:
    // `host_num` is PMPI_T_cvar_get_num or one like it, `ours` how many offpath has.
    Numbers(int (*host_num)(int*), int ours) : host_num_(host_num), ours_(ours) {}

    // How many there are; returns the error of the host's MPI, such as MPI_T_ERR_NOT_INITIALIZED.
    int count(int* all);
    // Both are valid after count() has returned MPI_SUCCESS. Index in offpath's list; -1: it is the host's.
    int ours(int number) const { return number >= first_ && number < first_ + ours_ ? number - first_ : -1; }
    int of_ours(int index) const { return first_ + index; }
    int to_host(int number) const { return number < first_ ? number : number - ours_; }
    int from_host(int number) const { return number < first_ ? number : number + ours_; }

  private:
    int (*host_num_)(int*);
    int ours_;
    std::mutex mutex_;
    int first_ = -1;  // of ours; set once
};

// Looks a number up: runs count(), then tells ours from the host's. `index` is that of ours or -1; `number`
// becomes the host's.
int look_up(Numbers& numbers, int& number, int& index);

// Gives a text to a tool as MPI_T does: `length` is the room on entry and the whole length on return, both
// with the zero at the end.
void give(const std::string& text, char* buffer, int* length);
template <typename T>
void give(const T& value, T* out) {
    if (out != nullptr) *out = value;
}

// Objects behind handles. The host's handles are never among them.
template <typename Object, typename Handle>
class Handles {
  public:
    Handle add(Object* object) {
        known_.insert(object);
        return reinterpret_cast<Handle>(object);
    }
    Object* find(Handle handle) const {
        auto* const object = reinterpret_cast<Object*>(handle);
        return known_.contains(object) ? object : nullptr;
    }
    void remove(Object* object) {
        known_.erase(object);
        delete object;
    }
    template <typename Condition>
    void remove_if(Condition condition) {
        std::erase_if(known_, [&](Object* object) {
            if (!condition(*object)) return false;
            delete object;
            return true;
        });
    }
    template <typename Function>
    void each(Function function) {
        for (Object* object : known_)
            function(*object);
    }

  private:
    std::unordered_set<Object*> known_;
};

// The numbers of the three lists.
Numbers& control_numbers();
Numbers& performance_numbers();
Numbers& category_numbers();

// The last MPI_T_finalize has come: all handles end.
void end_control_handles();
void end_performance_handles();

}  // namespace offpath::mpi::tools
