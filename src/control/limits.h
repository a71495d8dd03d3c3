// The largest values that a client and a proxy accept from each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::control {

constexpr std::size_t max_address_bytes = 24 << 10;
constexpr std::size_t max_link_address_bytes = 16 << 10;
constexpr std::size_t max_direct_address_bytes = 1 << 10;
constexpr std::size_t max_blob_bytes = 8 << 10;  // of an exported registration
constexpr std::size_t max_path_bytes = 4096;
constexpr std::size_t max_symbol_bytes = 256;
constexpr std::uint32_t max_kernel_streams = 16;
constexpr std::size_t max_kernel_text_bytes = 4096;
// KernelTexts that a daemon has sent and the client has not taken yet. They fit into the socket's buffer
// beside the answers to questions.
constexpr std::uint64_t max_kernel_texts = 8;
constexpr std::uint32_t max_job_size = 1u << 20;

}  // namespace offpath::control
