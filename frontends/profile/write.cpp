// The file of one rank, and the alignment of the ranks' clocks. docs/advise.md describes the format.
#include "frontends/clock/offset.h"
#include "profile/clock.h"
#include "profile/recorder.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstring>
#include <map>

namespace offpath::profile {
namespace {

constexpr int format_version = 1;

// Seconds to add to this rank's clock to get rank 0's.
double clock_offset(MPI_Comm comm) {
    int rank = 0, size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    double offset = 0;
    for (int other = 1; other < size; ++other) {
        if (rank == 0) clocks::answer(comm, other);
        if (rank == other) offset = static_cast<double>(clocks::ask(comm, 0).ns) * 1e-9;
    }
    return offset;
}

double offset_among_all() {
    MPI_Comm comm = MPI_COMM_NULL;
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) return 0;
    const double offset = clock_offset(comm);
    PMPI_Comm_free(&comm);
    return offset;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out + '"';
}

std::string program() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

// The object, the offset in it and the symbol of an address. The address is that of the instruction after the
// call.
std::string site_text(const void* site) {
    Dl_info info{};
    const auto address = reinterpret_cast<std::uintptr_t>(site) - 1;
    if (site == nullptr || dladdr(reinterpret_cast<const void*>(address), &info) == 0) return "null";
    char text[PATH_MAX + 512];
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    std::snprintf(
        text, sizeof text, R"({"object":%s,"offset":%)" PRIuPTR R"(,"symbol":%s})",
        quoted(info.dli_fname != nullptr && *info.dli_fname == '/' ? info.dli_fname : program()).c_str(),
        address - base, quoted(info.dli_sname != nullptr ? info.dli_sname : "").c_str());
    return text;
}

void complain(const std::string& path) {
    std::fprintf(stderr, "offpath-profile: %s: cannot be written: %s [OFP-0205]\n", path.c_str(),
                 std::strerror(errno));
}

}  // namespace

void Recorder::begin() {
    table_.assign(std::size_t{1} << 17, 0);
    kinds_.reserve(256);
    after_.assign(1, UINT32_MAX);
    grow();
    communicator_made(MPI_COMM_WORLD);
    communicator_made(MPI_COMM_SELF);
    offset_begin_s_ = offset_among_all();
    PMPI_Barrier(MPI_COMM_WORLD);
    begin_ns_ = nanoseconds(CLOCK_MONOTONIC);
    begin_cpu_ns_ = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    begin_ticks_ = left_ = ticks();
    reading_ = read_clocks(left_);
}

void Recorder::write(const char* folder) {
    const std::uint64_t end_ticks = ticks(), end_ns = nanoseconds(CLOCK_MONOTONIC);
    cpu_s_ = static_cast<double>(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_ns_) * 1e-9;
    seconds_per_tick_ = static_cast<double>(end_ns - begin_ns_) * 1e-9 /
                        static_cast<double>(std::max<std::uint64_t>(1, end_ticks - begin_ticks_));
    sequence_.close();
    const double offset = offset_among_all();
    const std::string path = std::string(folder) + "/rank-" + std::to_string(known_[0].rank) + ".json";
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) {
        complain(path);
        return;
    }
    write_file(file, static_cast<double>(end_ns) * 1e-9, offset);
    if (std::fclose(file) != 0) complain(path);
}

void Recorder::write_file(std::FILE* file, double end_s, double offset_end_s) const {
    char node[MPI_MAX_PROCESSOR_NAME + 1] = "";
    int length = 0;
    PMPI_Get_processor_name(node, &length);
    std::fprintf(file, "{\"format\":\"offpath-profile\",\"version\":%d,\n\"rank\":%d,\"ranks\":%zu,\n",
                 format_version, known_[0].rank, known_[0].members.size());
    std::fprintf(file, "\"program\":%s,\"node\":%s,\n", quoted(program()).c_str(), quoted(node).c_str());
    std::fprintf(file, "\"begin_s\":%.9f,\"end_s\":%.9f,\"offset_s\":[%.9f,%.9f],\n",
                 static_cast<double>(begin_ns_) * 1e-9, end_s, offset_begin_s_, offset_end_s);
    std::fprintf(
        file,
        "\"cpu_s\":%.9f,\"preempted_s\":%.9f,\"polled_s\":%.9f,\"compute_at_end_s\":%.9f,\"lost\":%" PRIu64
        ",\n",
        cpu_s_, seconds(preempted_), seconds(polled_), seconds(compute_), sequence_.lost());
    write_communicators(file);
    write_windows(file);
    write_calls(file);
    std::fputs("\"sequence\":[", file);
    write_nodes(file, sequence_.nodes());
    std::fputs("],\n", file);
    write_arrivals(file);
    std::fputs("}\n", file);
}

void Recorder::write_communicators(std::FILE* file) const {
    std::fputs("\"communicators\":[", file);
    for (std::size_t i = 0; i < known_.size(); ++i) {
        std::fprintf(file, "%s{\"occurrence\":%d,\"rank\":%d,\"members\":[", i == 0 ? "" : ",\n",
                     known_[i].occurrence, known_[i].rank);
        for (std::size_t member = 0; member < known_[i].members.size(); ++member)
            std::fprintf(file, "%s%d", member == 0 ? "" : ",", known_[i].members[member]);
        std::fputs("]}", file);
    }
    std::fputs("],\n", file);
}

void Recorder::write_windows(std::FILE* file) const {
    std::fputs("\"windows\":[", file);
    for (std::size_t i = 0; i < windows_.size(); ++i)
        std::fprintf(file, R"(%s{"comm":%u,"bytes":%)" PRIu64 R"(,"allocated":%d})", i == 0 ? "" : ",",
                     windows_[i].comm - 1, windows_[i].bytes, windows_[i].allocated ? 1 : 0);
    std::fputs("],\n", file);
}

void Recorder::write_calls(std::FILE* file) const {
    std::map<const void*, std::size_t> sites;
    for (const Kind& kind : kinds_)
        sites.emplace(kind.kind.site, 0);
    std::fputs("\"sites\":[", file);
    std::size_t number = 0;
    for (auto& [site, its] : sites) {
        std::fprintf(file, "%s%s", number == 0 ? "" : ",\n", site_text(site).c_str());
        its = number++;
    }
    std::fputs("],\n\"calls\":[", file);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
        const Kind& one = kinds_[i];
        const CallKind& kind = one.kind;
        std::fprintf(file, "%s{\"call\":\"%s\",\"site\":%zu", i == 0 ? "" : ",\n", kind.name,
                     sites.at(kind.site));
        if (kind.comm != 0) std::fprintf(file, ",\"comm\":%u", kind.comm - 1);
        if (kind.window != 0) std::fprintf(file, ",\"window\":%u", kind.window - 1);
        if (kind.peer != -3) std::fprintf(file, ",\"peer\":%d", kind.peer);
        if (kind.tag != -3) std::fprintf(file, ",\"tag\":%d", kind.tag);
        if (kind.bytes != 0) std::fprintf(file, ",\"bytes\":%" PRIu64, kind.bytes);
        if (kind.other_peer != -3)
            std::fprintf(file, R"(,"from":%d,"from_tag":%d,"from_bytes":%)" PRIu64, kind.other_peer,
                         kind.other_tag, kind.other_bytes);
        if (!kind.list.empty()) {
            std::fputs(",\"list\":[", file);
            for (std::size_t at = 0; at < kind.list.size(); ++at)
                std::fprintf(file, "%s%" PRIu64, at == 0 ? "" : ",", kind.list[at]);
            std::fputc(']', file);
        }
        if (one.window.count != 0)
            std::fprintf(file, R"(,"windows":{"count":%)" PRIu64 R"(,"compute_s":%.9f,"waited_s":%.9f})",
                         one.window.count, seconds(one.window.compute), seconds(one.window.waited));
        if (one.lost_count != 0)
            std::fprintf(file, R"(,"lost":{"count":%)" PRIu64 R"(,"compute_s":%.9f,"inside_s":%.9f})",
                         one.lost_count, seconds(one.lost.compute), seconds(one.lost.inside));
        std::fputc('}', file);
    }
    std::fputs("],\n", file);
}

// A call is [number, count, compute_s, inside_s, tests], a loop {"times": n, "body": [...]}. Times and tests
// are sums over all `count` calls. If some of these had no computation, and others had, their number follows.
void Recorder::write_nodes(std::FILE* file, const std::vector<Node>& nodes) const {
    const char* separator = "";
    for (const Node& node : nodes) {
        std::fputs(std::exchange(separator, ",\n"), file);
        if (node.call != Node::loop) {
            std::fprintf(file, "[%u,%" PRIu64 ",%.9f,%.9f,%" PRIu64, node.call, node.count,
                         seconds(node.times.compute), seconds(node.times.inside), node.times.tests);
            if (node.times.bare > 0 && node.times.bare < node.count)
                std::fprintf(file, ",%" PRIu64, node.times.bare);
            std::fputc(']', file);
            continue;
        }
        std::fprintf(file, "{\"times\":%u,\"body\":[", node.iterations);
        write_nodes(file, node.body);
        std::fputs("]}", file);
    }
}

void Recorder::write_arrivals(std::FILE* file) const {
    std::fprintf(file, "\"arrivals\":{\"stride\":%" PRIu64 ",\"entries\":[", arrival_stride_);
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
        const Arrival& one = arrivals_[i];
        const double entered = static_cast<double>(begin_ns_) * 1e-9 + seconds(one.entered - begin_ticks_);
        std::fprintf(file, "%s[%u,%" PRIu64 ",%u,%.9f,%.9f]", i == 0 ? "" : ",\n", one.comm - 1, one.number,
                     one.kind, entered, seconds(one.inside));
    }
    std::fputs("]}\n", file);
}

}  // namespace offpath::profile
