// LoadedObject: a library or the program itself, as the loader has mapped it: its dynamic symbols, and the
// slots that hold addresses of functions which it calls. Only for 64-bit processors of Intel and Arm;
// elsewhere no object has symbols. Threads: one at a time; the slots may be read meanwhile.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::mpi {

class LoadedObject {
  public:
    LoadedObject() = default;  // none
    // All objects of the process, in the order in which the loader looks symbols up.
    static std::vector<LoadedObject> all();

    const std::string& path() const { return path_; }
    bool contains(const void* address) const;

    // Calls `see(name, address)` for each function that the object defines.
    template <typename See>
    void functions(See see) const {
        for (const Elf64_Sym& symbol : symbols_)
            if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
                see(name_of(symbol), base_ + symbol.st_value);
    }

    struct Redirected {
        bool changed = false;  // some slots have got other addresses
        bool failed = false;   // some could not be written
    };
    // Calls `choose(name, address)` for each slot with the address of a function of another object. Where the
    // loader has not looked it up yet, the address lies in this object. Unless it returns 0, the slot gets
    // that address.
    template <typename Choose>
    Redirected redirect(Choose choose) const {
        Redirected result;
        for (const std::span<const Elf64_Rela> list : {slots_, data_slots_})
            for (const Elf64_Rela& slot : list) {
                if (!holds_function(slot)) continue;
                const Elf64_Sym& symbol = all_symbols_[ELF64_R_SYM(slot.r_info)];
                if (symbol.st_shndx != SHN_UNDEF) continue;
                const std::uint64_t now = *reinterpret_cast<const std::uint64_t*>(base_ + slot.r_offset);
                if (const std::uint64_t address = choose(name_of(symbol), now); address != 0)
                    write(base_ + slot.r_offset, address, result);
            }
        return result;
    }

  private:
    explicit LoadedObject(const dl_phdr_info& info);
    std::uint64_t read_dynamic(const Elf64_Dyn* entry);
    void count_symbols(std::uint64_t hash);
    std::string_view name_of(const Elf64_Sym& symbol) const { return strings_ + symbol.st_name; }
    static bool holds_function(const Elf64_Rela& slot);
    void write(std::uint64_t place, std::uint64_t address, Redirected& result) const;

    std::string path_;
    std::uint64_t base_ = 0;
    std::span<const Elf64_Phdr> segments_;
    const Elf64_Sym* all_symbols_ = nullptr;
    std::span<const Elf64_Sym> symbols_;
    const char* strings_ = "";
    std::span<const Elf64_Rela> slots_, data_slots_;
};

}  // namespace offpath::mpi
