#include "memory/session_memory.h"

#include "base/clock.h"
#include "base/log.h"
#include "memory/aside_copies.h"
#include "memory/cma.h"
#include "memory/copy.h"
#include "memory/map_regions.h"
#include "memory/residency.h"
#include "memory/shared_pages.h"
#include "memory/shared_staged_transfers.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace offpath::memory {

namespace {

// When this many copies of a session wait, the session gets no more of the engine's buffers.
constexpr std::size_t many_waiting = 4;

class BackedMemory final : public SessionMemory {
  public:
    explicit BackedMemory(SessionMemoryConfig config)
        : config_(std::move(config)), map_(config_.mapped_bytes_cap), general_(BackEnd::cma) {}

    ~BackedMemory() override {
        for (auto& [id, region] : regions_)
            close(region);
    }

    Status choose_general(std::string& problem);

    Status add_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes, File file) override;
    Status add_exported_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
                               std::span<const std::byte> blob) override;
    Status share_pages(std::uint64_t address, std::uint64_t bytes, File file) override;
    void forget_pages(std::uint64_t address, std::uint64_t bytes) override { shared_.forget(address, bytes); }
    Status remove_region(std::uint64_t id) override;
    Status pin(const HostRange& range) override;
    void unpin(const HostRange& range) override;

    BackEnd back_end(const HostRange& range) const override;
    std::byte* direct(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) override;
    bool has_shared_pages() const override { return !shared_.empty(); }
    ReadableRun readable_run(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) override;
    NetworkPlace network_place(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) override;
    Status copy_places(const NetworkPlace& from, const NetworkPlace& to, std::size_t bytes,
                       Completion* completion) override {
        if (stopped_ != Status::ok) return stopped_;
        return config_.exported->copy(from, to, bytes, completion);
    }
    Status read(const HostRange& range, std::uint64_t offset, void* destination, std::size_t bytes,
                Completion* completion) override;
    Status write(const HostRange& range, std::uint64_t offset, const void* source, std::size_t bytes,
                 Completion* completion) override;

    Status copy_pieces(bool writes, std::span<const HostPiece> pieces, Completion* completion,
                       std::uint32_t& later) override;

    bool reads_at_once(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) override {
        if (range.region != 0 || staged_ != nullptr) return false;
        return is_shared(range.address + offset, bytes) ||
               residency_.resident(range.address + offset, bytes, false, now_ns());
    }
    bool waits() const override { return aside_ != nullptr && aside_->outstanding() >= many_waiting; }

    bool copies_within(const HostRange& from, const HostRange& to) const override {
        return from.region == 0 && to.region == 0 && staged_ != nullptr && staged_->copies_within();
    }
    Status copy(const HostRange& from, std::uint64_t from_offset, const HostRange& to,
                std::uint64_t to_offset, std::size_t bytes, Completion* completion) override;

    int region_file(const HostRange& range, std::uint64_t& bytes) const override {
        const auto found = regions_.find(range.region);
        if (found == regions_.end() || found->second.kind != BackEnd::map) return -1;
        bytes = found->second.mapped.bytes;
        return found->second.mapped.file.get();
    }
    BackEnd general_back_end() const override { return general_; }
    StagingFiles take_staging_files() override { return std::move(staging_files_); }
    unsigned progress() override {
        if (staged_ != nullptr) return staged_->progress();
        return aside_ != nullptr && aside_->outstanding() > 0 ? aside_->progress(residency_, now_ns()) : 0;
    }
    int event_fd() const override {
        if (staged_ != nullptr) return staged_->event_fd();
        return aside_ != nullptr ? aside_->event_fd() : -1;
    }
    Status arm() override {
        if (staged_ != nullptr) return staged_->arm();
        return aside_ != nullptr && aside_->finished_some() ? Status::retry : Status::ok;
    }
    Status health() const override { return staged_ == nullptr ? Status::ok : staged_->health(); }
    void stop(Status reason) override {
        if (stopped_ == Status::ok) stopped_ = reason;
        if (staged_ != nullptr) staged_->stop(reason);
        if (aside_ != nullptr) aside_->stop(reason);
    }
    bool drained() const override {
        if (staged_ != nullptr) return staged_->drained();
        return aside_ == nullptr || aside_->outstanding() == 0;
    }
    void abandon(Status reason) override {
        if (stopped_ == Status::ok) stopped_ = reason;
        if (staged_ != nullptr) staged_->abandon(reason);
        if (aside_ != nullptr) aside_->abandon(reason);
    }

  private:
    struct Region {
        BackEnd kind = BackEnd::map;
        std::uint32_t pins = 0;
        bool ending = false;
        MapRegions::Region mapped;  // both kinds use its id, address and bytes
        ExportedMemory::Handle exported = nullptr;
    };

    Status admit(std::uint64_t id, std::uint64_t address, std::uint64_t bytes);
    void close(Region& region);
    Region* find(std::uint64_t id);
    Status check(const HostRange& range, const Region* region) const;
    Status copy_part(bool writes, const HostRange& range, std::uint64_t offset, std::byte* local,
                     std::size_t bytes, Completion* completion);
    Status copy_general(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes,
                        Completion* completion);
    Status copy_by_cma(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes,
                       Completion* completion);
    bool is_shared(std::uint64_t address, std::uint64_t bytes) const {
        if (shared_.empty() || bytes == 0) return false;
        const SharedPages::Run run = shared_.run(address, bytes);
        return run.pointer != nullptr && run.bytes == bytes;
    }
    Status check_part(const HostRange& range, std::uint64_t offset, std::uint64_t bytes, Region*& region);

    SessionMemoryConfig config_;
    MapRegions map_;
    std::unordered_map<std::uint64_t, Region> regions_;
    // Regions found lately, by the last bits of their ids. They point into regions_, whose elements stay in
    // place.
    std::array<Region*, 8> recent_{};
    BackEnd general_;
    Cma cma_;
    SharedPages shared_;  // only with cma
    Residency residency_;
    std::unique_ptr<AsideCopies> aside_;          // only with cma
    std::vector<ForeignPiece> present_, absent_;  // used by copy_pieces()
    std::unique_ptr<StagedTransfers> staged_;
    StagingFiles staging_files_;
    Status stopped_ = Status::ok;
};

Status BackedMemory::choose_general(std::string& problem) {
    if (config_.transfers != nullptr) {
        general_ = BackEnd::staged;
        staged_ = std::move(config_.transfers);
        if (config_.general != GeneralBackEnd::cma) return Status::ok;
        problem = "cma cannot be had: the device has an operating system of its own";
        return Status::unsupported;
    }
    if (config_.general != GeneralBackEnd::staged) {
        std::string why_not;
        residency_.open(config_.pid);
        Status status = Status::unsupported;
        if (residency_.resident(config_.probe_address, sizeof config_.probe_value, false, now_ns()))
            status = cma_probe(config_.pid, config_.probe_address, config_.probe_value, why_not);
        else
            why_not = "the word that it names is not in memory";
        if (status == Status::ok) status = Cma::open(config_.pid, cma_, config_.given_up, config_.writing);
        if (status == Status::ok)
            status = AsideCopies::open(config_.pid, config_.given_up, config_.writing, aside_);
        if (status == Status::ok) return status;
        if (config_.general == GeneralBackEnd::cma) {
            problem = fmt::format("cma cannot be had: {}", why_not.empty() ? to_string(status) : why_not);
            return Status::unsupported;
        }
        log::info("{}: staged, since cma cannot be had: {}", config_.client, why_not);
    }
    general_ = BackEnd::staged;
    const Status status = SharedStagedTransfers::create(config_.staging_slots, config_.staging_slot_bytes,
                                                        staged_, staging_files_);
    if (status == Status::invalid)
        problem = fmt::format(
            "staging with {} slots of {} bytes; accepted are {} to {} slots of {} to {} bytes, in multiples "
            "of "
            "{}",
            config_.staging_slots, config_.staging_slot_bytes, StagingArea::min_slots, StagingArea::max_slots,
            StagingArea::min_slot_bytes, StagingArea::max_slot_bytes, StagingArea::min_slot_bytes);
    else if (status != Status::ok)
        problem = fmt::format("no staging area: {}", to_string(status));
    return status;
}

Status BackedMemory::admit(std::uint64_t id, std::uint64_t address, std::uint64_t bytes) {
    const char* why = nullptr;
    Status status = Status::invalid;
    if (id == 0)
        why = "the id 0 is reserved";
    else if (bytes == 0 || address > UINT64_MAX - bytes)
        why = "its range is empty or wraps around";
    else if (regions_.contains(id))
        why = "its id is in use";
    else if (regions_.size() >= config_.max_regions) {
        why = "there are too many";
        status = Status::memory;
    }
    if (why == nullptr) return Status::ok;
    log::warn(Code::region, "{}: region {} ({} bytes at {:#x}) refused: {}", config_.client, id, bytes,
              address, why);
    return status;
}

Status BackedMemory::add_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes, File file) {
    if (const Status status = admit(id, address, bytes); status != Status::ok) return status;
    Region region;
    region.mapped = {id, address, bytes, std::move(file), {}};
    const char* why = "";
    if (const Status status = map_.open(region.mapped, why); status != Status::ok) {
        log::warn(Code::region, "{}: region {} ({} bytes) refused: {}", config_.client, id, bytes, why);
        return status;
    }
    regions_.emplace(id, std::move(region));
    return Status::ok;
}

Status BackedMemory::add_exported_region(std::uint64_t id, std::uint64_t address, std::uint64_t bytes,
                                         std::span<const std::byte> blob) {
    if (config_.exported == nullptr) return Status::unsupported;
    if (const Status status = admit(id, address, bytes); status != Status::ok) return status;
    Region region;
    region.kind = BackEnd::xgvmi;
    region.mapped = {id, address, bytes, File(), {}};
    const Status status = config_.exported->import_region(blob, address, bytes, region.exported);
    if (status == Status::ok) regions_.emplace(id, std::move(region));
    return status;
}

Status BackedMemory::share_pages(std::uint64_t address, std::uint64_t bytes, File file) {
    if (staged_ != nullptr) return Status::unsupported;
    const char* why = "";
    const Status status = shared_.add(address, bytes, std::move(file), why);
    if (status != Status::ok)
        log::warn(Code::region, "{}: {} bytes of its pages at {:#x} refused: {}", config_.client, bytes,
                  address, why);
    return status;
}

void BackedMemory::close(Region& region) {
    if (region.kind == BackEnd::map)
        map_.close(region.mapped);
    else
        config_.exported->release(region.exported);
}

Status BackedMemory::remove_region(std::uint64_t id) {
    Region* const region = find(id);
    if (region == nullptr) return Status::invalid;
    region->ending = true;
    if (region->pins > 0) return Status::retry;
    close(*region);
    recent_[id % recent_.size()] = nullptr;
    regions_.erase(id);
    return Status::ok;
}

BackedMemory::Region* BackedMemory::find(std::uint64_t id) {
    Region*& recent = recent_[id % recent_.size()];
    if (recent != nullptr && recent->mapped.id == id) return recent;
    const auto found = regions_.find(id);
    if (found == regions_.end()) return nullptr;
    return recent = &found->second;
}

Status BackedMemory::check(const HostRange& range, const Region* region) const {
    const char* why = nullptr;
    if (range.region != 0 && region == nullptr)
        why = "there is no such region";
    else if (range.region == 0 && range.address > UINT64_MAX - range.bytes)
        why = "it wraps around";
    else if (region != nullptr &&
             (range.address > region->mapped.bytes || range.bytes > region->mapped.bytes - range.address))
        why = "it leaves the region";
    if (why == nullptr) return Status::ok;
    log::warn(Code::region, "{}: {} bytes at {:#x} of region {} refused: {}", config_.client, range.bytes,
              range.address, range.region, why);
    return Status::access;
}

Status BackedMemory::check_part(const HostRange& range, std::uint64_t offset, std::uint64_t bytes,
                                Region*& region) {
    region = range.region == 0 ? nullptr : find(range.region);
    if (const Status status = check(range, region); status != Status::ok) return status;
    if (offset <= range.bytes && bytes <= range.bytes - offset) return Status::ok;
    log::warn(Code::region, "{}: {} bytes at offset {} leave a buffer of {} bytes", config_.client, bytes,
              offset, range.bytes);
    return Status::access;
}

Status BackedMemory::pin(const HostRange& range) {
    Region* const region = range.region == 0 ? nullptr : find(range.region);
    if (const Status status = check(range, region); status != Status::ok) return status;
    if (stopped_ != Status::ok) return stopped_;
    if (region == nullptr) return Status::ok;
    if (region->ending) {
        log::warn(Code::region, "{}: region {} is being revoked and cannot be used", config_.client,
                  range.region);
        return Status::access;
    }
    if (region->kind == BackEnd::map && map_.pin(region->mapped) == nullptr) return Status::memory;
    ++region->pins;
    return Status::ok;
}

void BackedMemory::unpin(const HostRange& range) {
    Region* const region = range.region == 0 ? nullptr : find(range.region);
    if (region == nullptr || region->pins == 0) return;
    if (--region->pins == 0 && region->kind == BackEnd::map) MapRegions::unpin(region->mapped);
}

BackEnd BackedMemory::back_end(const HostRange& range) const {
    if (range.region == 0) return general_;
    const auto found = regions_.find(range.region);
    return found == regions_.end() ? general_ : found->second.kind;
}

std::byte* BackedMemory::direct(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) {
    if (range.region == 0 || stopped_ != Status::ok) return nullptr;
    Region* region = nullptr;
    if (check_part(range, offset, bytes, region) != Status::ok || region->kind != BackEnd::map)
        return nullptr;
    std::byte* const base = map_.pin(region->mapped);
    return base == nullptr ? nullptr : base + range.address + offset;
}

ReadableRun BackedMemory::readable_run(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) {
    if (range.region != 0 || stopped_ != Status::ok || bytes == 0) return {nullptr, bytes};
    Region* none = nullptr;
    if (check_part(range, offset, bytes, none) != Status::ok) return {nullptr, bytes};
    const SharedPages::Run run = shared_.run(range.address + offset, bytes);
    return {run.pointer, run.bytes};
}

NetworkPlace BackedMemory::network_place(const HostRange& range, std::uint64_t offset, std::uint64_t bytes) {
    if (range.region == 0 || stopped_ != Status::ok) return {};
    Region* region = nullptr;
    if (check_part(range, offset, bytes, region) != Status::ok || region->kind != BackEnd::xgvmi) return {};
    return config_.exported->place(region->exported, region->mapped.address + range.address + offset);
}

Status BackedMemory::read(const HostRange& range, std::uint64_t offset, void* destination, std::size_t bytes,
                          Completion* completion) {
    return copy_part(false, range, offset, static_cast<std::byte*>(destination), bytes, completion);
}

Status BackedMemory::write(const HostRange& range, std::uint64_t offset, const void* source,
                           std::size_t bytes, Completion* completion) {
    auto* const local = static_cast<std::byte*>(const_cast<void*>(source));
    return copy_part(true, range, offset, local, bytes, completion);
}

Status BackedMemory::copy_part(bool writes, const HostRange& range, std::uint64_t offset, std::byte* local,
                               std::size_t bytes, Completion* completion) {
    if (stopped_ != Status::ok) return stopped_;
    Region* region = nullptr;
    if (const Status status = check_part(range, offset, bytes, region); status != Status::ok) return status;
    if (bytes == 0) return Status::ok;
    const std::uint64_t address = range.address + offset;
    if (region == nullptr) {
        if (staged_ == nullptr) return copy_general(writes, address, local, bytes, completion);
        const auto direction = writes ? StagingDirection::to_host : StagingDirection::to_device;
        return staged_->start(direction, address, local, bytes, completion);
    }
    if (region->kind == BackEnd::xgvmi) {
        ExportedMemory& exported = *config_.exported;
        const std::uint64_t place = region->mapped.address + address;
        return writes ? exported.write(region->exported, place, local, bytes, completion)
                      : exported.read(region->exported, place, local, bytes, completion);
    }
    std::byte* const base = map_.pin(region->mapped);
    if (base == nullptr) return Status::memory;
    if (writes)
        copy_bytes(base + address, local, bytes);
    else
        copy_bytes(local, base + address, bytes);
    return Status::ok;
}

// Shared pages at once, and the others around them by cma. More than one part by cma is copied as if nothing
// were shared, because there is one completion.
Status BackedMemory::copy_general(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes,
                                  Completion* completion) {
    if (shared_.empty()) return copy_by_cma(writes, address, local, bytes, completion);
    std::array<ForeignPiece, 2> others{};
    std::size_t count = 0;
    for (std::uint64_t done = 0; done < bytes;) {
        const SharedPages::Run run = shared_.run(address + done, bytes - done);
        if (run.pointer == nullptr) {
            if (count == others.size()) return copy_by_cma(writes, address, local, bytes, completion);
            others[count++] = {address + done, local + done, run.bytes};
        }
        done += run.bytes;
    }
    if (count == 1 && others[0].bytes == bytes) return copy_by_cma(writes, address, local, bytes, completion);
    for (std::uint64_t done = 0; done < bytes;) {
        const SharedPages::Run run = shared_.run(address + done, bytes - done);
        if (run.pointer != nullptr) {
            const Status status = writes ? cma_.write_mapped(run.pointer, local + done, run.bytes)
                                         : cma_.read_mapped(run.pointer, local + done, run.bytes);
            if (status != Status::ok) return status;
        }
        done += run.bytes;
    }
    const auto edges = std::span(others).first(count);
    if (count == 0) return Status::ok;
    const std::uint64_t now = now_ns();
    const bool there = completion == nullptr || std::ranges::all_of(edges, [&](const ForeignPiece& edge) {
                           return residency_.resident(edge.address, edge.bytes, writes, now);
                       });
    if (!there) return aside_->start(writes, edges, completion);
    return writes ? cma_.write(edges) : cma_.read(edges);
}

Status BackedMemory::copy_by_cma(bool writes, std::uint64_t address, std::byte* local, std::size_t bytes,
                                 Completion* completion) {
    if (completion != nullptr && !residency_.resident(address, bytes, writes, now_ns())) {
        const ForeignPiece piece{address, local, bytes};
        return aside_->start(writes, {&piece, 1}, completion);
    }
    return writes ? cma_.write(address, local, bytes) : cma_.read(address, local, bytes);
}

// With cma, pieces that are resident are copied with as few system calls as possible. The others become one
// copy, which a thread of its own makes.
Status BackedMemory::copy_pieces(bool writes, std::span<const HostPiece> pieces, Completion* completion,
                                 std::uint32_t& later) {
    const bool general =
        std::ranges::all_of(pieces, [](const HostPiece& each) { return each.range.region == 0; });
    if (staged_ != nullptr || !general) return HostMemory::copy_pieces(writes, pieces, completion, later);
    later = 0;
    if (stopped_ != Status::ok) return stopped_;
    const std::uint64_t now = now_ns();
    present_.clear();
    absent_.clear();
    for (const HostPiece& piece : pieces) {
        if (const Status status = check(piece.range, nullptr); status != Status::ok) return status;
        const ForeignPiece foreign{piece.range.address, piece.local, piece.range.bytes};
        const bool there = residency_.resident(foreign.address, foreign.bytes, writes, now);
        (there ? present_ : absent_).push_back(foreign);
    }
    Status status = Status::ok;
    if (!present_.empty()) status = writes ? cma_.write(present_) : cma_.read(present_);
    if (status != Status::ok || absent_.empty()) return status;
    status = aside_->start(writes, absent_, completion);
    if (status != Status::in_progress) return status;
    later = 1;
    return Status::ok;
}

Status BackedMemory::copy(const HostRange& from, std::uint64_t from_offset, const HostRange& to,
                          std::uint64_t to_offset, std::size_t bytes, Completion* completion) {
    if (stopped_ != Status::ok) return stopped_;
    if (!copies_within(from, to)) return Status::unsupported;
    Region* none = nullptr;
    Status status = check_part(from, from_offset, bytes, none);
    if (status == Status::ok) status = check_part(to, to_offset, bytes, none);
    if (status != Status::ok || bytes == 0) return status;
    return staged_->copy(from.address + from_offset, to.address + to_offset, bytes, completion);
}

}  // namespace

Status make_session_memory(SessionMemoryConfig config, std::unique_ptr<SessionMemory>& memory,
                           std::string& problem) {
    auto made = std::make_unique<BackedMemory>(std::move(config));
    if (const Status status = made->choose_general(problem); status != Status::ok) return status;
    memory = std::move(made);
    return Status::ok;
}

}  // namespace offpath::memory
