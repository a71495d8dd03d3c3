// The core under the real launcher, at any number of PEs: every way of moving data, to every PE, in heap and
// static memory, compared with the expected contents. It runs again without mapping the memory of other PEs,
// so that the devices do everything.
#include "core.h"
#include "heap.h"
#include "life.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace offpath::shmem;

namespace {

// Static symmetric memory, initialised and uninitialised.
std::uint64_t static_words[4096] = {7, 8, 9};
std::uint64_t static_zeros[1 << 16];
std::uint64_t static_counter = 1000;

void require(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "PE %d: %s\n", my_pe(), what.c_str());
    std::fflush(stderr);
    std::_Exit(1);
}

std::uint64_t value_of(int pe, std::uint64_t i) {
    return (static_cast<std::uint64_t>(pe) + 1) * 1000003 + i * 7;
}

std::uint64_t* allocate(std::size_t words) {
    void* const memory = heap_allocate(words * 8, 0);
    require(memory != nullptr, "heap");
    std::memset(memory, 0, words * 8);
    return static_cast<std::uint64_t*>(memory);
}

// All PEs put to all PEs, into slots by origin. Then all PEs get from all PEs.
void move(const char* name, std::uint64_t* slots, std::size_t words, bool nbi) {
    Context& context = default_context();
    const auto pes = static_cast<std::size_t>(n_pes());
    const auto me = static_cast<std::size_t>(my_pe());
    std::vector<std::uint64_t> data(words), got(words * pes);
    for (std::size_t i = 0; i < words; ++i)
        data[i] = value_of(my_pe(), i);
    meet();
    for (int pe = 0; pe < n_pes(); ++pe)
        put(context, slots + me * words, data.data(), words * 8, pe, nbi);
    quiet(context);
    meet();
    for (int pe = 0; pe < n_pes(); ++pe)
        for (std::size_t i = 0; i < words; ++i)
            require(slots[static_cast<std::size_t>(pe) * words + i] == value_of(pe, i),
                    std::string(name) + ": put");
    for (std::size_t pe = 0; pe < pes; ++pe)
        get(context, got.data() + pe * words, slots + ((me + pe) % pes) * words, words * 8,
            static_cast<int>(pe), nbi);
    quiet(context);
    for (std::size_t pe = 0; pe < pes; ++pe)
        for (std::size_t i = 0; i < words; ++i)
            require(got[pe * words + i] == value_of(static_cast<int>((me + pe) % pes), i),
                    std::string(name) + ": get");
    meet();
}

void strided(std::uint64_t* area) {
    Context& context = default_context();
    const int right = (my_pe() + 1) % n_pes(), left = (my_pe() + n_pes() - 1) % n_pes();
    constexpr std::size_t count = 12000;  // more bytes than one request takes
    std::vector<std::uint64_t> data(count * 3), got(count * 2);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = value_of(my_pe(), i);
    std::memset(area, 0, count * 5 * 8);
    meet();
    put_strided(context, area, data.data(), 5, 3, 8, count, right);
    quiet(context);
    meet();
    for (std::size_t i = 0; i < count * 5; ++i)
        require(area[i] == (i % 5 == 0 ? value_of(left, i / 5 * 3) : 0), "strided put");
    get_strided(context, got.data(), area, 2, 5, 8, count, right);
    for (std::size_t i = 0; i < count; ++i)
        require(got[i * 2] == value_of(my_pe(), i * 3), "strided get");
    // The low halves of its words. There are more elements than one request takes.
    std::vector<std::uint16_t> halves(count * 5);
    get_strided(context, halves.data(), area, 1, 4, 2, halves.size(), right);
    for (std::size_t i = 0; i < halves.size(); ++i)
        require(halves[i] == static_cast<std::uint16_t>(i % 5 == 0 ? value_of(my_pe(), i / 5 * 3) : 0),
                "strided get of many");
    meet();
    // Their high bytes, after an operation that must not overtake them.
    std::vector<std::uint8_t> bytes(count * 5, 0xff);
    put_strided(context, reinterpret_cast<std::uint8_t*>(area) + 7, bytes.data(), 8, 1, 1, bytes.size(),
                right);
    fence(context);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(i * 13 + static_cast<std::size_t>(my_pe()));
    put_strided(context, reinterpret_cast<std::uint8_t*>(area) + 7, bytes.data(), 8, 1, 1, bytes.size(),
                right);
    quiet(context);
    meet();
    for (std::size_t i = 0; i < bytes.size(); ++i)
        require(area[i] >> 56 == static_cast<std::uint8_t>(i * 13 + static_cast<std::size_t>(left)),
                "strided put of many");
    meet();
}

void atomics(std::uint64_t* word, const char* name) {
    Context& context = default_context();
    const auto pes = static_cast<std::uint64_t>(n_pes());
    constexpr std::uint64_t rounds = 200;
    *word = 0;
    meet();
    // All PEs update PE 0's word. So updates by PE 0 itself, by PEs of its node and by its proxy coincide.
    std::vector<std::uint64_t> drawn;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        std::uint64_t former = 0;
        amo(context, Amo::fetch_add, 8, word, 1, 0, &former, 0, false);
        drawn.push_back(former);
        amo(context, Amo::add, 8, word, std::uint64_t{1} << 32, 0, nullptr, 0, false);
    }
    quiet(context);
    meet();
    for (std::size_t i = 1; i < drawn.size(); ++i)
        require((drawn[i] & 0xffffffff) > (drawn[i - 1] & 0xffffffff), std::string(name) + ": draws go up");
    std::uint64_t total = 0;
    amo(context, Amo::fetch, 8, word, 0, 0, &total, 0, false);
    require(total == (rounds * pes << 32) + rounds * pes, std::string(name) + ": sums");
    meet();

    // All kinds of updates, on 4 and 8 bytes of the next PE, one after the other.
    const int right = (my_pe() + 1) % n_pes();
    for (const std::size_t element : {4u, 8u}) {
        std::uint64_t model = 0xf0f0;
        const std::uint64_t mask = element == 4 ? 0xffffffff : ~std::uint64_t{0};
        amo(context, Amo::set, element, word, model, 0, nullptr, right, false);
        quiet(context);
        const auto step = [&](Amo kind, std::uint64_t operand, std::uint64_t compare, std::uint64_t wanted,
                              bool nbi) {
            std::uint64_t former = 0;
            amo(context, kind, element, word, operand, compare, &former, right, nbi);
            quiet(context);
            require(former == model,
                    std::string(name) + ": former value of kind " + std::to_string(static_cast<int>(kind)));
            model = wanted & mask;
        };
        for (const bool nbi : {false, true}) {
            step(Amo::fetch_add, ~std::uint64_t{0}, 0, model - 1, nbi);
            step(Amo::fetch_and, 0xff00ff, 0, model & 0xff00ff, nbi);
            step(Amo::fetch_or, 0x12345678, 0, model | 0x12345678, nbi);
            step(Amo::fetch_xor, 0xffff, 0, model ^ 0xffff, nbi);
            step(Amo::swap, 42, 0, 42, nbi);
            step(Amo::compare_swap, 43, 41, 42, nbi);
            step(Amo::compare_swap, 43, 42, 43, nbi);
            step(Amo::fetch, 0, 0, 43, nbi);
        }
        amo(context, Amo::and_, element, word, 3, 0, nullptr, right, false);
        amo(context, Amo::or_, element, word, 4, 0, nullptr, right, false);
        amo(context, Amo::xor_, element, word, 1, 0, nullptr, right, false);
        quiet(context);
        std::uint64_t last = 0;
        amo(context, Amo::fetch, element, word, 0, 0, &last, right, false);
        require(last == 6, std::string(name) + ": without the former value");
        meet();
    }
}

// Data, then a flag behind a fence; and data with a signal. A PE that sees the flag sees the data.
void order(std::uint64_t* area, std::size_t words, bool nbi) {
    Context& context = default_context();
    const int right = (my_pe() + 1) % n_pes(), left = (my_pe() + n_pes() - 1) % n_pes();
    volatile std::uint64_t* const flag = area + words;
    std::uint64_t* const signal = area + words + 8;
    std::uint64_t* const ready = area + words + 16;
    std::memset(area, 0, (words + 24) * 8);
    meet();
    std::vector<std::uint64_t> data(words);
    const auto wait_for = [&](volatile const std::uint64_t* address, std::uint64_t value) {
        while (__atomic_load_n(address, __ATOMIC_ACQUIRE) != value)
            sched_yield();
    };
    for (std::uint64_t round = 1; round <= 20; ++round) {
        for (std::size_t i = 0; i < words; ++i)
            data[i] = value_of(my_pe(), i + round);
        put(context, area, data.data(), words * 8, right, nbi);
        fence(context);
        put(context, area + words, &round, 8, right, false);
        wait_for(flag, round);
        for (std::size_t i = 0; i < words; ++i)
            require(area[i] == value_of(left, i + round), "a flag came before its data");
        quiet(context);
        // The previous PE may write again.
        amo(context, Amo::set, 8, ready, 2 * round - 1, 0, nullptr, left, false);
        quiet(context);
        wait_for(ready, 2 * round - 1);

        for (std::size_t i = 0; i < words; ++i)
            data[i] = ~data[i];
        put_signal(context, area, data.data(), words * 8, signal, round % 2 == 0 ? round * 10 : 10,
                   round % 2 == 0 ? signal_set : signal_add, right, nbi);
        wait_for(signal, round % 2 == 0 ? round * 10 : (round - 1) * 10 + 10);
        for (std::size_t i = 0; i < words; ++i)
            require(area[i] == ~value_of(left, i + round), "a signal came before its data");
        quiet(context);
        amo(context, Amo::set, 8, ready, 2 * round, 0, nullptr, left, false);
        quiet(context);
        wait_for(ready, 2 * round);
    }
    meet();
}

void team_context() {
    // The PEs in reverse order.
    std::vector<int> backwards;
    for (int pe = n_pes(); pe > 0; --pe)
        backwards.push_back(pe - 1);
    Context* const context = create_context(0, backwards, nullptr);
    static_words[100] = value_of(my_pe(), 100);
    meet();
    for (int pe = 0; pe < n_pes(); ++pe) {
        std::uint64_t got = 0;
        get(*context, &got, &static_words[100], 8, pe, false);
        require(got == value_of(n_pes() - 1 - pe, 100), "a context of a team");
    }
    destroy_context(context);
    meet();
}

}  // namespace

int main() {
    static_counter = 1001;
    start(thread_single);
    require(static_words[1] == 8 && static_words[5] == 0 && static_counter == 1001,
            "static data survive the start");
    const auto pes = static_cast<std::size_t>(n_pes());
    std::uint64_t* const heap = allocate(pes * (1 << 16) + 64);
    for (const std::size_t words : {std::size_t{1}, std::size_t{3}, std::size_t{511}, std::size_t{513},
                                    std::size_t{4096}, std::size_t{1} << 16}) {
        for (const bool nbi : {false, true}) {
            move("heap", heap, words, nbi);
            if (words * pes <= std::size(static_words)) move("static data", static_words, words, nbi);
            if (words * pes <= std::size(static_zeros)) move("static zeros", static_zeros, words, nbi);
        }
    }
    strided(heap);
    strided(static_zeros);
    atomics(heap, "heap");
    atomics(&static_counter, "static data");
    for (const std::size_t words : {std::size_t{1}, std::size_t{700}, std::size_t{20000}}) {
        order(heap, words, false);
        order(heap, words, true);
    }
    team_context();
    if (my_pe() == 0) std::printf("%d PEs: all right\n", n_pes());
    stop();
    return 0;
}
