// Words under way: combined words that ranks make while their programs go on. poll()
// (requests/offloaded_requests.h) makes the steps that need not wait. Until the last one, this rank counts as
// one that has operations outstanding, so its waits poll: another rank may need its steps.
//
// Ownership: the words outlive the object. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "combined_words.h"

namespace offpath::mpi {

// Those that have not ended.
inline std::atomic<std::uint32_t> words_under_way{0};
void advance_words_under_way();

class UnderWay {
  public:
    explicit UnderWay(CombinedWords& words);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

    // Makes the steps that need not wait. True: the last one was made.
    bool advance();

  private:
    friend void advance_words_under_way();
    bool advance_locked();

    CombinedWords& words_;
    bool ended_ = false;
};

}  // namespace offpath::mpi
