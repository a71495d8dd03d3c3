// ImageKeeper: keeps the images of programs' target regions for later programs. A program's target host asks
// for an image, and offers one that the program has sent (target/image_records.h). Target hosts run code of
// programs, so the keeper trusts none of them:
//
//   - It gives an image only to a program that proves that it has the image (target/image_name.h).
//   - It copies what a host offers and hashes its own copy. It seals the copy before others get it. So no
//     program can change, or give another content to, an image that others run.
//   - The first host that asks for an image in vain is expected to offer it. Later ones wait for their answer
//     until it has, or has said that it will not, or has ended; the next one is then expected to. They wait
//     no longer than they want to (target/host/daemon_images.cpp).
//   - The bytes of an image that is being copied count towards the limit, and one is copied at a time.
//
// Ownership: owns its ends of the sockets. Threads: one at a time. It copies in pieces, so that the daemon's
// main thread does not stop for a large image.
#pragma once

#include "base/file_descriptor.h"
#include "base/log_limit.h"
#include "proxy/image_cache.h"
#include "target/image_records.h"

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <string>

namespace offpath::proxy {

class ImageKeeper {
  public:
    static constexpr std::size_t max_offers = 64;     // that wait; more are ignored
    static constexpr std::size_t max_expected = 256;  // for more images, no host waits
    static constexpr std::size_t max_waiting = 1024;  // more hosts get an answer at once

    // `epoll` watches the sockets. The caller that gets an event from it calls handle().
    ImageKeeper(std::uint64_t limit_bytes, int epoll) : cache_(limit_bytes), epoll_(epoll) {}
    ~ImageKeeper();
    ImageKeeper(const ImageKeeper&) = delete;
    ImageKeeper& operator=(const ImageKeeper&) = delete;

    // Makes the socket of a target host, whose program has got the nonce. Returns the host's end; none: there
    // are no descriptors left. `client` is for people.
    FileDescriptor serve(std::string client, const target::ImageNonce& nonce);
    // True: it was one of the sockets.
    bool handle(int fd);
    // Whether there is something to copy, and a piece of that.
    bool busy() const { return !offers_.empty(); }
    void work();

    const ImageCache& cache() const { return cache_; }
    std::uint64_t found() const { return found_; }  // how often an image was given

  private:
    struct Host {
        FileDescriptor socket;
        target::ImageNonce nonce{};
        std::string client;
    };
    struct Offer {
        target::ImageName name{};
        std::uint64_t bytes = 0, done = 0;
        memory::File source, copy;
        target::ImageHash hash;
        std::string client;
        bool expected = false;  // nobody else is expected to offer it
    };
    struct Waiting {
        Host* host = nullptr;
        target::ImageRequest request;
    };
    void answer(Host& host, const target::ImageRequest& request);
    bool must_wait(Host& host, const target::ImageRequest& request);
    void settle(const target::ImageName& name);
    void withdraw(const Host& host, const target::ImageName& name);
    void drop(std::list<Host>::iterator host);
    void take(Host& host, const target::ImageRequest& request, memory::File file);
    bool begin(Offer& offer, std::string& problem);
    bool copy_piece(Offer& offer, std::string& problem);
    void finish(Offer& offer);
    void complain(const std::string& client, const std::string& problem);

    ImageCache cache_;
    const int epoll_;
    std::list<Host> hosts_;
    std::deque<Offer> offers_;                           // the first one is being copied
    std::map<target::ImageName, const Host*> expected_;  // who is to offer an image; null: its offer is there
    std::list<Waiting> waiting_;
    std::uint64_t found_ = 0;
    LogLimit complaints_;
};

}  // namespace offpath::proxy
