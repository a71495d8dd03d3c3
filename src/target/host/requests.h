// Requests: takes the program's requests from its line, checks their sizes, and hands them to a handler.
// Memory for a payload grows as the payload arrives, so a number in a request never makes this process
// allocate more than was sent. Ownership: borrows line and handler. Threads: one at a time.
#pragma once

#include "base/status.h"
#include "target/host/streams.h"
#include "target/record_io.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace offpath::target {

constexpr std::uint64_t max_symbol_bytes = 16 << 20;  // of the names in one FindSymbols

// What the program asks for. `number`: of the answer. A call's payload is valid until the call returns.
class RequestHandler {
  public:
    virtual ~RequestHandler() = default;
    virtual void find_image(std::uint64_t number, const FindImage& find) = 0;
    virtual void load_image(std::uint64_t number, const LoadImage& load,
                            std::span<const std::byte> image) = 0;
    virtual void load_library(std::uint64_t number, const std::string& name) = 0;
    // There are `find.count` names.
    virtual void find_symbols(std::uint64_t number, const FindSymbols& find,
                              std::span<const std::string> names) = 0;
    virtual void allocate(std::uint64_t number, const Allocate& allocate) = 0;
    virtual void map_file(std::uint64_t number, const MapFile& file) = 0;
    virtual void part(std::uint64_t number, const Part& part) = 0;
    virtual void unify(std::uint64_t number, std::span<const AddressRange> ranges) = 0;
    virtual void fetched(std::uint64_t number, std::span<const std::byte> bytes) = 0;
    // Returns where the data of a put goes as it arrives; empty: the put is to be queued. `bytes` > 0.
    virtual std::span<std::byte> place(std::uint32_t stream, const Put& put, std::uint64_t bytes) = 0;
    virtual void queue(std::uint32_t stream, Work work) = 0;
    // The request was skipped.
    virtual void refuse(std::uint64_t number, Status status, const std::string& why) = 0;
};

class Requests {
  public:
    Requests(Line& line, RequestHandler& handler) : reader_(line), handler_(handler) {}

    enum class Next : std::uint8_t { none, request, broken };
    // Handles the next request, and waits for its payload. none: no request has arrived. broken: the program
    // and this process do not understand each other.
    Next next();

  private:
    template <typename Body>
    Next read(const Head& head);
    bool take(std::uint64_t bytes, std::vector<std::byte>& payload);
    void refuse(const Head& head, std::uint64_t bytes, Status status, const std::string& why);

    // `bytes`: of the payload.
    void on(const Head& head, const FindImage& find, std::uint64_t bytes);
    void on(const Head& head, const LoadImage& load, std::uint64_t bytes);
    void on(const Head& head, const LoadLibrary& load, std::uint64_t bytes);
    void on(const Head& head, const FindSymbols& find, std::uint64_t bytes);
    void on(const Head& head, const Allocate& allocate, std::uint64_t bytes);
    void on(const Head& head, const MapFile& file, std::uint64_t bytes);
    void on(const Head& head, const Part& part, std::uint64_t bytes);
    void on(const Head& head, const Release& release, std::uint64_t bytes);
    void on(const Head& head, const Put& put, std::uint64_t bytes);
    void on(const Head& head, const PutFrom& put, std::uint64_t bytes);
    void on(const Head& head, const Get& get, std::uint64_t bytes);
    void on(const Head& head, const Copy& copy, std::uint64_t bytes);
    void on(const Head& head, const Call& call, std::uint64_t bytes);
    void on(const Head& head, const Sync& sync, std::uint64_t bytes);
    void on(const Head& head, const Unify& unify, std::uint64_t bytes);
    void on(const Head& head, const Fetched& fetched, std::uint64_t bytes);

    RecordReader reader_;
    RequestHandler& handler_;
};

}  // namespace offpath::target
