#include "loaded_object.h"

#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

namespace offpath::mpi {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t call_slot = R_X86_64_JUMP_SLOT, address_slot = R_X86_64_GLOB_DAT, word = R_X86_64_64;
#elif defined(__aarch64__)
constexpr std::uint32_t call_slot = R_AARCH64_JUMP_SLOT, address_slot = R_AARCH64_GLOB_DAT,
                        word = R_AARCH64_ABS64;
#else
constexpr std::uint32_t call_slot = UINT32_MAX, address_slot = UINT32_MAX, word = UINT32_MAX;
#endif

// The number of the dynamic symbols that a GNU hash table describes: one more than the last in a chain.
std::size_t symbols_in(const std::uint32_t* hash) {
    const std::uint32_t buckets = hash[0], first = hash[1], filter_words = hash[2];
    const std::uint32_t* const bucket =
        hash + 4 + filter_words * (sizeof(std::uint64_t) / sizeof(std::uint32_t));
    const std::uint32_t* const chains = bucket + buckets;
    const std::uint32_t last = buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
    if (last < first) return first;
    std::uint32_t at = last;
    while ((chains[at - first] & 1) == 0)
        ++at;
    return at + 1;
}

}  // namespace

std::vector<LoadedObject> LoadedObject::all() {
    std::vector<LoadedObject> found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* list) {
            static_cast<std::vector<LoadedObject>*>(list)->push_back(LoadedObject(*info));
            return 0;
        },
        &found);
    return found;
}

LoadedObject::LoadedObject(const dl_phdr_info& info)
    : path_(info.dlpi_name), base_(info.dlpi_addr), segments_(info.dlpi_phdr, info.dlpi_phnum) {
    for (const Elf64_Phdr& segment : segments_)
        if (segment.p_type == PT_DYNAMIC)
            // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells numbers
            if (const std::uint64_t hash =
                    read_dynamic(reinterpret_cast<Elf64_Dyn*>(base_ + segment.p_vaddr)))
                count_symbols(hash);
}

// Returns the address of the hash table; 0: there is none. The loader has made addresses of most values.
std::uint64_t LoadedObject::read_dynamic(const Elf64_Dyn* entry) {
    std::uint64_t hash = 0, slots = 0, slot_bytes = 0, data_slots = 0, data_slot_bytes = 0;
    for (; entry->d_tag != DT_NULL; ++entry) {
        const std::uint64_t value = entry->d_un.d_val;
        const std::uint64_t address = value < base_ ? value + base_ : value;
        if (entry->d_tag == DT_SYMTAB) all_symbols_ = reinterpret_cast<const Elf64_Sym*>(address);
        if (entry->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(address);
        if (entry->d_tag == DT_GNU_HASH) hash = address;
        if (entry->d_tag == DT_JMPREL) slots = address;
        if (entry->d_tag == DT_PLTRELSZ) slot_bytes = value;
        if (entry->d_tag == DT_RELA) data_slots = address;
        if (entry->d_tag == DT_RELASZ) data_slot_bytes = value;
    }
    if (all_symbols_ == nullptr || call_slot == UINT32_MAX) return 0;
    slots_ = {reinterpret_cast<const Elf64_Rela*>(slots), slot_bytes / sizeof(Elf64_Rela)};
    data_slots_ = {reinterpret_cast<const Elf64_Rela*>(data_slots), data_slot_bytes / sizeof(Elf64_Rela)};
    return hash;
}

void LoadedObject::count_symbols(std::uint64_t hash) {
    symbols_ = {all_symbols_, symbols_in(reinterpret_cast<const std::uint32_t*>(hash))};
}

bool LoadedObject::contains(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(segments_, [&](const Elf64_Phdr& segment) {
        return segment.p_type == PT_LOAD && place >= base_ + segment.p_vaddr &&
               place - base_ - segment.p_vaddr < segment.p_memsz;
    });
}

bool LoadedObject::holds_function(const Elf64_Rela& slot) {
    const std::uint64_t type = ELF64_R_TYPE(slot.r_info);
    return type == call_slot || type == address_slot || (type == word && slot.r_addend == 0);
}

// The loader has protected some slots against writes.
void LoadedObject::write(std::uint64_t place, std::uint64_t address, Redirected& result) const {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), begin = place / page * page;
    const bool sealed = std::ranges::any_of(segments_, [&](const Elf64_Phdr& segment) {
        return segment.p_type == PT_GNU_RELRO && place >= (base_ + segment.p_vaddr) / page * page &&
               place < (base_ + segment.p_vaddr + segment.p_memsz) / page * page;
    });
    auto* const there = reinterpret_cast<std::uint64_t*>(place);
    if (*there == address) return;
    if (sealed && mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | PROT_WRITE) != 0) {
        result.failed = true;
        return;
    }
    result.changed = true;
    __atomic_store_n(there, address, __ATOMIC_RELAXED);
    if (sealed) mprotect(reinterpret_cast<void*>(begin), page, PROT_READ);
}

}  // namespace offpath::mpi
