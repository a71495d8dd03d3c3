#include "link/host_staging.h"

#include "base/log.h"

#include <algorithm>

namespace offpath::link {

Status HostStaging::on_fetch(std::span<const std::byte> items, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto item = decode_item<FetchItem>(items, i);
        if (item.bytes == 0 || item.bytes > max_fetch_bytes) return Status::protocol;
        const bool direct =
            item.bytes > batch_bytes && item.address <= UINT64_MAX - item.bytes &&
            (transport_.checks_memory() || memory_.readable(item.address, item.bytes) == Status::ok);
        for (std::uint32_t offset = 0; offset < item.bytes; offset += part_bytes) {
            const Status status = send_part(item, offset, std::min(part_bytes, item.bytes - offset), direct);
            if (status != Status::ok) return status;
        }
    }
    return Status::ok;
}

Status HostStaging::send_part(const FetchItem& item, std::uint32_t offset, std::uint32_t bytes, bool direct) {
    Header header;
    header.kind = Kind::data;
    header.token = token_;
    header.position = offset;
    header.id = item.id;
    header.bytes = bytes;
    const std::uint64_t address = item.address + offset;
    if (direct && bytes > transport::Transport::max_post) {
        this->count(bytes_to_device_, bytes);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): our own address, which the device sends back
        const auto* const from = reinterpret_cast<const void*>(address);
        const Status status = out_.send(*bulk_, header, from, bytes, nullptr);
        if (status == Status::access) complain("read", address, bytes);  // the transport tells the device
        return status == Status::in_progress || status == Status::access ? Status::ok : status;
    }
    copy_.resize(bytes);
    const Status status =
        address < item.address ? Status::access : memory_.read(address, copy_.data(), bytes);
    if (status != Status::ok) {
        complain("read", address, bytes);
        header.bytes = 0;
        header.status = status;
        return out_.post(*control_, header, {});
    }
    this->count(bytes_to_device_, bytes);
    return out_.post(bytes <= batch_bytes ? *control_ : *bulk_, header, copy_);
}

Status HostStaging::on_copy(std::span<const std::byte> items, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto item = decode_item<CopyItem>(items, i);
        if (item.bytes == 0 || item.bytes > part_bytes) return Status::protocol;
        const Status status = memory_.copy(item.from, item.to, item.bytes);
        if (status != Status::ok) complain("copied", item.to, item.bytes);
        answer(item.id, status);
    }
    return Status::ok;
}

Status HostStaging::on_store(const Header& header, const transport::Incoming& message) {
    if (message.rendezvous == nullptr) {
        answer(header.id, put(header.position, message.data, header.bytes));
        return Status::ok;
    }
    const Status there = header.position > UINT64_MAX - header.bytes ? Status::access
                         : transport_.checks_memory()                ? Status::ok
                                                      : memory_.writable(header.position, header.bytes);
    if (there == Status::access) {
        transport_.discard(message.rendezvous);
        complain("written", header.position, header.bytes);
        answer(header.id, there);
        return Status::ok;
    }
    StoreFetch* const fetching = fetches_.take();
    fetching->function = &HostStaging::on_fetched;
    fetching->owner = this;
    fetching->id = header.id;
    fetching->bytes = header.bytes;
    fetching->address = header.position;
    fetching->direct = there == Status::ok;
    if (!fetching->direct) fetching->own.resize(header.bytes);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): our own address, which the device sends back
    void* const host = reinterpret_cast<void*>(header.position);
    void* const to = fetching->direct ? host : fetching->own.data();
    ++fetching_;
    const Status status = transport_.fetch(message.rendezvous, to, header.bytes, fetching);
    if (status != Status::in_progress) on_fetched(fetching, status);
    return Status::ok;
}

Status HostStaging::put(std::uint64_t address, const std::byte* data, std::uint32_t bytes) {
    // A short payload can take the safer way.
    const Status status =
        bytes <= batch_bytes ? memory_.write(address, data, bytes) : memory_.put(address, data, bytes);
    if (status == Status::ok)
        count(bytes_to_host_, bytes);
    else
        complain("written", address, bytes);
    return status;
}

// Logs the first few failures only. A transfer has many pieces, and its owner gets the error anyway.
void HostStaging::complain(const char* what, std::uint64_t address, std::uint32_t bytes) {
    if (complaints_++ < 4)
        log::warn(Code::region, "the device was told of {} bytes at {:#x}, which cannot be {}", bytes,
                  address, what);
}

void HostStaging::on_fetched(Completion* self, Status status) {
    auto* const fetching = static_cast<StoreFetch*>(self);
    HostStaging& owner = *fetching->owner;
    --owner.fetching_;
    if (status == Status::ok && !fetching->direct)
        status = owner.put(fetching->address, fetching->own.data(), fetching->bytes);
    else if (status == Status::ok)
        count(owner.bytes_to_host_, fetching->bytes);
    else if (status == Status::access)
        owner.complain("written", fetching->address, fetching->bytes);
    owner.answer(fetching->id, status);
    owner.fetches_.give_back(fetching);
}

void HostStaging::answer(std::uint32_t id, Status status) {
    answers_.resize(answers_.size() + wire_bytes<StoredItem>);
    encode_item(StoredItem{id, status}, std::span(answers_).last(wire_bytes<StoredItem>));
}

Status HostStaging::flush() {
    for (std::size_t sent = 0; sent < answers_.size() && control_ != nullptr;) {
        const std::size_t bytes =
            std::min(answers_.size() - sent, max_items<StoredItem> * wire_bytes<StoredItem>);
        Header header;
        header.kind = Kind::stored;
        header.token = token_;
        header.count = static_cast<std::uint32_t>(bytes / wire_bytes<StoredItem>);
        header.bytes = static_cast<std::uint32_t>(bytes);
        const Status status = out_.post(*control_, header, std::span(answers_).subspan(sent, bytes));
        if (status != Status::ok) return status;
        sent += bytes;
    }
    answers_.clear();
    return Status::ok;
}

}  // namespace offpath::link
