// Service: serves one program over a line. It has a pool of threads. At any time one of them may read
// requests (the *reader*). It queues them in streams, then works on a stream itself while another thread
// becomes the reader. So a short function runs on the thread that read its request, without a switch of
// threads. The pool grows when all its threads work, so that functions that wait for each other do not wait
// for a thread.
//
// Ownership: it borrows the line. Threads: run() in one thread, which makes the others. Lifetime: one per
// process, because it takes over the process's output and signals.
#pragma once

#include "memory/cma.h"
#include "target/host/daemon_images.h"
#include "target/host/device_memory.h"
#include "target/host/fetched_pages.h"
#include "target/host/images.h"
#include "target/host/joint_copies.h"
#include "target/host/mapped_files.h"
#include "target/host/output_lines.h"
#include "target/host/requests.h"
#include "target/host/streams.h"
#include "target/host/unified_memory.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace offpath::target {

struct ServiceOptions {
    // Reads and writes the program's memory; null: data go over the line.
    const memory::Cma* program = nullptr;
    pid_t program_pid = 0;           // with `program`
    std::uint64_t spin_ns = 50'000;  // how long the reader spins before it sleeps
    // Why libraries in this process cannot attach to the daemon; empty: they can.
    std::string no_daemon;
};

class Service final : private RequestHandler {
  public:
    Service(Line& line, FileDescriptor images, ServiceOptions options);
    ~Service() override;
    // Serves until the program hangs up. False: functions still run, so the process must end without
    // destroying this object.
    bool run();
    // Sends what functions have printed so far. Call it before the process ends.
    void flush_output() { output_.flush(); }
    // For the handler of SIGSEGV. True: the page is there now (UnifiedMemory::fault).
    bool page_fault(std::uint64_t address, std::uint64_t instruction);
    // Tells the program which function was running, then returns. `address`: of a bad access. Call it in a
    // signal handler, or while the process exits (signal 0).
    void obituary(int signal, std::uint64_t address = 0);

  private:
    static constexpr std::size_t max_threads = 256;

    void work();
    void end();
    void beat();
    bool lead();
    void load_file(std::uint64_t number, const ImageName& name, memory::File file, std::uint64_t keep);
    void find_image(std::uint64_t number, const FindImage& find) override;
    void load_image(std::uint64_t number, const LoadImage& load, std::span<const std::byte> image) override;
    void load_library(std::uint64_t number, const std::string& name) override;
    void find_symbols(std::uint64_t number, const FindSymbols& find,
                      std::span<const std::string> names) override;
    void allocate(std::uint64_t number, const Allocate& allocate) override;
    void map_file(std::uint64_t number, const MapFile& file) override;
    void part(std::uint64_t number, const Part& part) override;
    void unify(std::uint64_t number, std::span<const AddressRange> ranges) override;
    void fetched(std::uint64_t number, std::span<const std::byte> bytes) override;
    std::span<std::byte> place(std::uint32_t stream, const Put& put, std::uint64_t bytes) override;
    void queue(std::uint32_t stream, Work work) override;
    void refuse(std::uint64_t number, Status status, const std::string& why) override;
    void add_thread();

    void run_stream(Stream& stream);
    void perform(Stream& stream, PutWork& work);
    void perform(Stream& stream, PutFromWork& work);
    void perform(Stream& stream, GetWork& work);
    void perform(Stream& stream, Copy& work);
    void perform(Stream& stream, CallWork& work);
    void perform(Stream& stream, SyncWork& work);
    void perform(Stream& stream, Release& work);
    Status move(JointCopies::Way way, std::uint64_t number, std::uint64_t here, std::uint64_t there,
                std::uint64_t bytes);
    void give_changes(Stream& stream, const char* name);
    static void fail(Stream& stream, Status status, std::string problem);

    void answer(std::uint64_t number, Status status, std::uint64_t value, std::span<const std::byte> payload);
    void answer(std::uint64_t number, Status status, std::uint64_t value, const std::string& problem);
    void send(std::span<const std::byte> first, std::span<const std::byte> second = {});

    Line& line_;
    const pid_t process_ = getpid();
    const ServiceOptions options_;
    Requests requests_;
    Images images_;
    DaemonImages kept_;  // used by the thread that reads
    DeviceMemory memory_;
    MappedFiles files_;
    JointCopies joint_;
    Streams streams_;
    std::unique_ptr<UnifiedMemory> unified_;  // null: the program's memory is its own
    std::unique_ptr<FetchedPages> fetched_;   // null: this process reads that memory itself
    std::atomic<bool> over_{false};
    std::mutex reading_, sending_;
    std::atomic<std::size_t> idle_{0};  // threads that do not work on a stream
    std::mutex threads_mutex_;
    std::condition_variable changed_;  // notified when over_ or working_ changes
    std::size_t working_ = 0;          // threads that have not left work()
    std::vector<std::thread> threads_;
    OutputLines output_;  // last, so that it ends first
};

}  // namespace offpath::target
