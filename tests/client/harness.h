// The harness of the client's tests: a real offpathd in a directory of its own, and jobs of real processes
// that bootstrap by a callback over shared memory. Everything has a time limit and is cleaned up at the end.
//
// With OFFPATH_TEST_ATTACH=remote in the environment, the same tests attach over TCP: daemons also listen at
// 127.0.0.1, with a key in their directory, and ranks find them there.
#pragma once

#include <offpath/offpath.h>

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace offpath::test {

// Whether ranks attach as if the device had an operating system of its own.
bool remote_mode();

class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    const std::string& path() const { return path_; }
    std::vector<std::string> files() const;

  private:
    std::string path_;
};

class DaemonProcess {
  public:
    // `host`: gives the daemon another host name (a UTS namespace), so that it is another node; empty: this
    // node.
    explicit DaemonProcess(const std::string& directory, std::vector<std::string> options = {},
                           const std::string& host = {});
    ~DaemonProcess();
    bool ready() const { return ready_; }
    pid_t pid() const { return pid_; }
    bool running() const;
    void signal(int number) const;
    // Waits at most `seconds` for the end. Returns the exit code; -1: killed by a signal, -2: still running.
    int wait(double seconds = 60);
    std::string log() const;
    // 127.0.0.1:PORT, if the daemon listens.
    std::string address() const;
    std::size_t descriptors() const;
    double cpu_seconds() const;

  private:
    std::string log_path_, port_path_;
    pid_t pid_ = -1;
    bool ready_ = false;
};

// A rank's numbers and its context.
struct Rank {
    std::uint32_t rank = 0, size = 1;
    std::string directory;
    offpath_threads_t threads = OFFPATH_THREADS_SINGLE;
    void* shared = nullptr;  // 4 KiB that all ranks and the test share, initially zero
    offpath_allgather_fn allgather = nullptr;
    void* allgather_user = nullptr;

    offpath_status_t try_init(offpath_context_h* context) const;
    offpath_context_h init() const;  // ends the rank with an error message if it fails
    offpath_team_h world(offpath_context_h context) const;
    void barrier() const;
};

// Ends this rank with a message if `holds` is false.
void require(bool holds, const std::string& what);
void expect(offpath_status_t got, offpath_status_t wanted, const std::string& what);
double now();
// Gives this process, and only it, another host name. false: the system does not allow it.
bool become_host(const std::string& name);

class Job {
  public:
    using Body = std::function<void(const Rank&)>;
    Job(std::uint32_t size, const std::string& directory, const Body& body,
        offpath_threads_t threads = OFFPATH_THREADS_SINGLE);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    pid_t pid(std::uint32_t rank) const { return pids_[rank]; }
    void* shared() const;
    // All exit codes: 0 success, -1 killed by a signal, -2 still running after `seconds` (then killed).
    std::vector<int> wait(double seconds = 60);

  private:
    void* area_ = nullptr;
    std::vector<pid_t> pids_;
};

// Runs the body on `size` ranks. Returns whether all of them succeeded.
bool all_right(std::uint32_t size, const std::string& directory, const Job::Body& body,
               offpath_threads_t threads = OFFPATH_THREADS_SINGLE);

// A rank that exchanges with all others until that fails with `wanted_end`, or until 40 s have passed. It
// counts its exchanges in the first word of Rank::shared. by_test: it tests and never waits.
void endless_job(const Rank& me, offpath_status_t wanted_end, bool by_test);
// Waits until the ranks of such a job have completed `count` exchanges, all together.
void wait_until_started(const Job& job, std::uint32_t count = 50);
std::vector<int> zeros(std::size_t count);

}  // namespace offpath::test
