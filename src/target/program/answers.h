// Answers: receives what a program waits for from its target host. The thread that waits first reads the line
// and settles what arrives for all threads. The host runs the program's own code, which may be faulty. So an
// answer that no thread waits for is dropped, and data go only into memory that a get has named, until
// open_memory().
//
// Ownership: borrows the line. Threads: any; open_memory() is called before other threads use the object.
#pragma once

#include "base/status.h"
#include "control/life_signs.h"
#include "target/program/joint_help.h"
#include "target/record_io.h"
#include "target/silence.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace offpath::target {

struct Answer {
    Status status = Status::ok;
    std::uint64_t value = 0;
    std::vector<std::byte> payload;
};

class Answers {
  public:
    // `tell` takes what a function wrote to descriptor 1 or 2.
    using Tell = std::function<void(int descriptor, const std::string& text)>;
    // A host that sends nothing for `patience_ns` while a thread waits for it is given up; 0: never. If it is
    // on this system, time in which a debugger has stopped it, or in which it waits for a CPU, does not
    // count.
    Answers(Line& line, Tell tell, std::uint64_t spin_ns, std::uint64_t patience_ns, bool here);
    // From now on the host may read and write this process's memory. `reply` sends a record; it must not wait
    // for anything that this object does.
    using Reply = std::function<void(std::vector<std::byte> record)>;
    void open_memory(Reply reply);

    // Returns a number for a request, before that is sent.
    std::uint64_t expect();
    // The same for a get into `destination`. The get is over with the next answer to expect() of its stream.
    std::uint64_t expect_data(void* destination, std::uint64_t bytes) {
        return expect_copy({ExpectedCopy::Way::from_host, static_cast<std::byte*>(destination), 0, bytes});
    }
    // The same for a copy in either direction, with which the host may want help.
    std::uint64_t expect_copy(const ExpectedCopy& copy);
    void forget_data(std::uint64_t number);

    // Blocks. peer_lost: the host is gone. After `limit_ns`, if that is not 0, hangs up on the host, and
    // why() is then `limit_problem`.
    Answer wait(std::uint64_t number, std::uint64_t limit_ns = 0, const std::string& limit_problem = {});
    // False: the answer has not arrived, not even after `nap_ns`, in which this thread may have slept.
    bool test(std::uint64_t number, Answer& answer, std::uint64_t nap_ns = 0);
    // Reads an answer if there is one, for a thread that finds no room to write. Otherwise sleeps for a
    // moment.
    void make_room();
    bool lost() const { return lost_; }
    // Tells how the host ended.
    std::string why() const;

  private:
    struct Entry {
        bool done = false;
        Answer answer;
    };
    bool take(std::uint64_t number, Answer& answer);
    void wait_for_reader(std::unique_lock<std::mutex>& lock, std::uint64_t number, std::uint64_t limit_ns);
    void stop_reading();
    void serve_all();
    bool serve();
    bool read_record(const Head& head);
    bool read_done(const Head& head);
    bool read_data(const Head& head);
    bool read_output(const Head& head);
    bool read_lost(const Head& head);
    bool read_text(const Head& head, std::uint64_t body, std::string& text);
    bool read_fetch(const Head& head);
    bool read_store(const Head& head);
    bool read_beat(const Head& head);
    bool read_join(const Head& head);
    void listen();
    bool is_silent();
    void set_why(std::string why);
    void abandon(const std::string& problem);
    void give_up();

    Line& line_;
    const Tell tell_;
    const std::uint64_t spin_ns_, patience_ns_;
    const bool here_;      // the host's process is on this system
    Reply reply_;          // null: the host may not read this process's memory
    RecordReader reader_;  // used by the thread that reads, like the next five
    JointHelp help_;
    Silence silence_;
    control::LifeSigns signs_;    // of a host on this system, instead of silence_
    bool heard_ = false;          // something since the last look for signs
    std::uint64_t host_pid_ = 0;  // 0: not known
    mutable std::mutex mutex_;    // guards the members below
    std::condition_variable changed_;
    bool is_read_ = false;  // a thread reads the line
    std::uint64_t last_ = 0;
    std::map<std::uint64_t, Entry> entries_;
    std::map<std::uint64_t, ExpectedCopy> expected_;
    std::string why_;  // empty: the host has not told it
    std::atomic<bool> lost_{false};
};

}  // namespace offpath::target
