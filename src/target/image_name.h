// How a device image is known: by the hash of its content. All hashes are BLAKE2b with 256 bits; each has a
// purpose of its own, so that none of them is the usual hash of the file.
//
//   secret = hash of the content     made by everyone who has the image; never sent
//   name   = hash of the secret      asks for the image
//   proof  = hash of a nonce, with the secret as its key
//
// So a program that only knows the name, or has seen the proof of another one, cannot get the image.
// Threads: any; an ImageHash belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace offpath::target {

using ImageSecret = std::array<std::byte, 32>;
using ImageName = std::array<std::byte, 32>;
using ImageProof = std::array<std::byte, 32>;
using ImageNonce = std::array<std::byte, 16>;  // the daemon draws one for each target host

// The secret of an image that comes in pieces.
class ImageHash {
  public:
    ImageHash();
    ~ImageHash();
    void add(std::span<const std::byte> piece);
    // Last of all calls.
    ImageSecret secret();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

ImageSecret secret_of(std::span<const std::byte> image);
ImageName name_of(const ImageSecret& secret);
ImageProof prove(const ImageSecret& secret, const ImageNonce& nonce);
// Takes the same time wherever the proof is wrong.
bool proves(const ImageProof& proof, const ImageSecret& secret, const ImageNonce& nonce);

}  // namespace offpath::target
