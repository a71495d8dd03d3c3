// EpochTrial: finds the faster way for the puts, or the gets, of one size by trying both. Pure. A trial
// belongs to one process and needs no agreement: puts and gets of an epoch may go either way
// (frontends/mpi/rma/epochs.h).
//
// A sample is the time from an epoch's first operation to the end of its flush. Epochs with another number of
// operations restart the trial.
//
// A trial costs what the slower way costs. A trial that follows another one's result, for a neighbouring
// size, therefore keeps to that result at first. It tries both ways only after many epochs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "ways/way_choice.h"

namespace offpath::ways {

class alignas(64) EpochTrial {
  public:
    static constexpr std::uint32_t pairs_wanted = 3;
    // A way that is slower by this factor is not tried again at once.
    static constexpr std::uint64_t clearly = 2;
    static constexpr std::uint32_t epochs_between_tries = 2048;
    // Detects a target that has left MPI: the epoch took this long, and this many times the usual time.
    static constexpr std::uint64_t stall_ns = 1'000'000;
    static constexpr std::uint64_t stall_factor = 10;
    static constexpr std::uint32_t epochs_after_stall = 64;
    // How many epochs follow another trial's result.
    static constexpr std::uint32_t epochs_led = 128;

    // The way of the next epoch.
    Way next() const {
        if (stalled_ > 0) return Way::device;
        if (led_ > 0) return lead_;
        if (is_decided()) return since_try_ >= epochs_between_tries ? other(faster()) : faster();
        return tries_[at(Way::host)] <= tries_[at(Way::device)] ? Way::host : Way::device;
    }

    // `took` and `stall`, which is stall_ns, are in ticks of any clock.
    void ended(Way way, std::uint32_t operations, std::uint64_t took, std::uint64_t stall) {
        const auto length = static_cast<std::uint32_t>(std::bit_width(operations));
        if (length != length_) {
            if (length_ != 0) *this = EpochTrial();
            length_ = length;
        }
        if (led_ > 0) --led_;
        if (stalled_ > 0) --stalled_;
        std::uint64_t& usual = usual_[at(way)];
        if (way == Way::host && usual > 0 && took > stall && took > stall_factor * usual) {
            stalled_ = epochs_after_stall;
            return;
        }
        const bool again = is_decided() && way != faster();
        since_try_ = again ? 0 : since_try_ + 1;
        if (tries_[at(way)]++ < pairs_wanted) {
            usual = usual == 0 ? took : std::min(usual, took);
        } else {
            // The slower way is sampled rarely, so each sample of it has a large weight.
            usual = again ? (usual + took) / 2 : (usual * 7 + took) / 8;
        }
    }

    bool is_fresh() const { return length_ == 0 && led_ == 0; }
    void follow(const EpochTrial& other) {
        lead_ = other.faster();
        led_ = epochs_led;
    }

    bool is_decided() const {
        const std::uint64_t host = usual_[at(Way::host)], device = usual_[at(Way::device)];
        if (host == 0 || device == 0) return false;
        if (std::max(host, device) >= clearly * std::min(host, device)) return true;
        return std::min(tries_[0], tries_[1]) >= pairs_wanted;
    }
    // The host's way, unless the device is faster by more than the clock's noise.
    Way faster() const {
        return usual_[at(Way::device)] < usual_[at(Way::host)] / 100 * 97 ? Way::device : Way::host;
    }

  private:
    static std::size_t at(Way way) { return static_cast<std::size_t>(way); }
    static Way other(Way way) { return way == Way::host ? Way::device : Way::host; }

    std::array<std::uint64_t, 2> usual_{};  // ticks; 0: not tried
    std::array<std::uint32_t, 2> tries_{};
    std::uint32_t length_ = 0;
    std::uint32_t since_try_ = 0;
    std::uint32_t stalled_ = 0;
    std::uint32_t led_ = 0;  // epochs that still use `lead_`
    Way lead_ = Way::host;
};

}  // namespace offpath::ways
