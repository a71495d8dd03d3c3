#include "target/image_name.h"

#include "base/sodium_calls.h"

namespace offpath::target {
namespace {

using Purpose = std::array<unsigned char, crypto_generichash_blake2b_PERSONALBYTES>;
constexpr Purpose of_content{'o', 'f', 'f', 'p', 'a', 't', 'h', ' ', 'i', 'm', 'a', 'g', 'e'};
constexpr Purpose of_name{'o', 'f', 'f', 'p', 'a', 't', 'h', ' ', 'n', 'a', 'm', 'e'};
constexpr Purpose of_proof{'o', 'f', 'f', 'p', 'a', 't', 'h', ' ', 'p', 'r', 'o', 'o', 'f'};

std::array<std::byte, 32> hash(const Purpose& purpose, std::span<const std::byte> data,
                               std::span<const std::byte> key) {
    std::array<std::byte, 32> result;
    crypto_generichash_blake2b_salt_personal(sodium::out(result), result.size(), sodium::in(data),
                                             data.size(), key.empty() ? nullptr : sodium::in(key), key.size(),
                                             nullptr, purpose.data());
    return result;
}

}  // namespace

struct ImageHash::State {
    crypto_generichash_blake2b_state state;
};

ImageHash::ImageHash() : state_(std::make_unique<State>()) {
    sodium::start();
    crypto_generichash_blake2b_init_salt_personal(&state_->state, nullptr, 0, sizeof(ImageSecret), nullptr,
                                                  of_content.data());
}

ImageHash::~ImageHash() = default;

void ImageHash::add(std::span<const std::byte> piece) {
    crypto_generichash_blake2b_update(&state_->state, sodium::in(piece), piece.size());
}

ImageSecret ImageHash::secret() {
    ImageSecret result;
    crypto_generichash_blake2b_final(&state_->state, sodium::out(result), result.size());
    return result;
}

ImageSecret secret_of(std::span<const std::byte> image) {
    ImageHash content;
    content.add(image);
    return content.secret();
}

ImageName name_of(const ImageSecret& secret) {
    return hash(of_name, secret, {});
}

ImageProof prove(const ImageSecret& secret, const ImageNonce& nonce) {
    return hash(of_proof, nonce, secret);
}

bool proves(const ImageProof& proof, const ImageSecret& secret, const ImageNonce& nonce) {
    return sodium_memcmp(proof.data(), prove(secret, nonce).data(), proof.size()) == 0;
}

}  // namespace offpath::target
