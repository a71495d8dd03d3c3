// FreeList: recycles records, so that a warm fast path does not allocate. A record's address is stable for
// the list's life. The list destroys all records, including those that were not given back. Threads: one.
#pragma once

#include <deque>
#include <vector>

namespace offpath::transport {

template <typename Record>
class FreeList {
  public:
    Record* take() {
        if (free_.empty()) {
            free_.reserve(storage_.size() + 1);
            return &storage_.emplace_back();
        }
        Record* record = free_.back();
        free_.pop_back();
        return record;
    }
    void give_back(Record* record) { free_.push_back(record); }

  private:
    std::deque<Record> storage_;
    std::vector<Record*> free_;
};

}  // namespace offpath::transport
