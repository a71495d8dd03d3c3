// Variables of MPI_T: those of the host's MPI keep their numbers and work, and offpath's come after them,
// before MPI_Init and behind it. Counters show what a collective does; settings change what it does.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "check.h"

namespace {

constexpr int room = 4096;

using Names = std::vector<std::string>;

std::string cut(const char* text) {
    return {text, strnlen(text, room)};
}

int count_of(int (*num)(int*)) {
    int count = -1;
    check::that(num(&count) == MPI_SUCCESS, "the number of variables");
    return count;
}

std::string control_name(int (*get)(int, char*, int*, int*, MPI_Datatype*, MPI_T_enum*, char*, int*, int*,
                                    int*),
                         int number) {
    char name[room] = "";
    int length = room;
    // Open MPI has variables of components that it has unloaded.
    if (get(number, name, &length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) !=
        MPI_SUCCESS)
        return "none";
    check::that(length == static_cast<int>(std::strlen(name)) + 1, "{} has the length {}", name, length);
    return cut(name);
}

using PerformanceInfo = int(int, char*, int*, int*, int*, MPI_Datatype*, MPI_T_enum*, char*, int*, int*, int*,
                            int*, int*);

std::string performance_name(PerformanceInfo* get, int number) {
    char name[room] = "";
    int length = room;
    int verbosity, var_class, bind, readonly, continuous, atomic;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum enumeration = MPI_T_ENUM_NULL;
    if (get(number, name, &length, &verbosity, &var_class, &type, &enumeration, nullptr, nullptr, &bind,
            &readonly, &continuous, &atomic) != MPI_SUCCESS)
        return "none";
    return cut(name);
}

std::string category_name(int (*get)(int, char*, int*, char*, int*, int*, int*, int*), int number) {
    char name[room] = "";
    int length = room;
    int cvars, pvars, categories;
    if (get(number, name, &length, nullptr, nullptr, &cvars, &pvars, &categories) != MPI_SUCCESS)
        return "none";
    return cut(name);
}

bool is_ours(const std::string& name) {
    return name.starts_with("offpath");
}

// All names as a tool sees them. Without offpath's, they are the host's in its order.
Names list(const char* what, int all, int hosts, const std::function<std::string(int)>& name,
           const std::function<std::string(int)>& host_name) {
    Names names;
    int at = 0;
    for (int i = 0; i < all; ++i) {
        names.push_back(name(i));
        if (is_ours(names.back())) continue;
        check::that(at < hosts && host_name(at) == names.back(), "{} {} is {}", what, i, names.back());
        ++at;
    }
    check::that(at == hosts, "{} of {} {}s of the host's MPI are there", at, hosts, what);
    return names;
}

struct Lists {
    Names control, performance, categories;
};

Lists list_all() {
    return {list(
                "control variable", count_of(MPI_T_cvar_get_num), count_of(PMPI_T_cvar_get_num),
                [](int i) { return control_name(MPI_T_cvar_get_info, i); },
                [](int i) { return control_name(PMPI_T_cvar_get_info, i); }),
            list(
                "performance variable", count_of(MPI_T_pvar_get_num), count_of(PMPI_T_pvar_get_num),
                [](int i) { return performance_name(MPI_T_pvar_get_info, i); },
                [](int i) { return performance_name(PMPI_T_pvar_get_info, i); }),
            list(
                "category", count_of(MPI_T_category_get_num), count_of(PMPI_T_category_get_num),
                [](int i) { return category_name(MPI_T_category_get_info, i); },
                [](int i) { return category_name(PMPI_T_category_get_info, i); })};
}

void keep_their_numbers(const Names& before, const Names& after) {
    check::that(after.size() >= before.size() && std::equal(before.begin(), before.end(), after.begin(),
                                                            [](const std::string& a, const std::string& b) {
                                                                return a == b || a == "none" || b == "none";
                                                            }),
                "numbers have changed: there were {}, and are {}", before.size(), after.size());
}

int control_index(const char* name) {
    int number = -1;
    check::that(MPI_T_cvar_get_index(name, &number) == MPI_SUCCESS, "there is no {}", name);
    return number;
}

class Control {
  public:
    explicit Control(const char* name) : name_(name) {
        int count = 0;
        check::that(MPI_T_cvar_handle_alloc(control_index(name), nullptr, &handle_, &count) == MPI_SUCCESS &&
                        count > 0 && count <= room,
                    "a handle of {}", name);
    }
    ~Control() {
        check::that(MPI_T_cvar_handle_free(&handle_) == MPI_SUCCESS && handle_ == MPI_T_CVAR_HANDLE_NULL,
                    "the handle of {} is freed", name_);
    }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;
    int write(const char* text) {
        char buffer[room] = "";
        std::strncpy(buffer, text, room - 1);
        return MPI_T_cvar_write(handle_, buffer);
    }
    std::string read() {
        char buffer[room] = "";
        check::that(MPI_T_cvar_read(handle_, buffer) == MPI_SUCCESS, "{} is read", name_);
        return cut(buffer);
    }

  private:
    const char* name_;
    MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
};

// Control variables of the host's MPI are read by both ways, and written back. Open MPI 4.1 crashes where it
// reads those of a component that it has unloaded.
bool is_usable(const std::string& name) {
    return name.starts_with("mpi_") || name.starts_with("MPIR_CVAR_");
}

void host_control_variables_work(const Names& names) {
    int used = 0;
    for (int number = 0, host = -1; number < static_cast<int>(names.size()); ++number) {
        if (is_ours(names[static_cast<std::size_t>(number)])) continue;
        ++host;
        if (!is_usable(names[static_cast<std::size_t>(number)])) continue;
        int bind = 0, scope = 0, count = 0, value = -1, same = -2;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_cvar_get_info(number, nullptr, nullptr, nullptr, &type, nullptr, nullptr, nullptr, &bind,
                            &scope);
        if (type != MPI_INT || bind != MPI_T_BIND_NO_OBJECT) continue;
        MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL, direct = MPI_T_CVAR_HANDLE_NULL;
        if (PMPI_T_cvar_handle_alloc(host, nullptr, &direct, &count) != MPI_SUCCESS || count != 1) continue;
        check::that(MPI_T_cvar_handle_alloc(number, nullptr, &handle, &count) == MPI_SUCCESS, "handle");
        const int error = PMPI_T_cvar_read(direct, &same);
        check::that(MPI_T_cvar_read(handle, &value) == error && (error != MPI_SUCCESS || value == same),
                    "{} is {}, not {}", names[static_cast<std::size_t>(number)], value, same);
        check::that(MPI_T_cvar_write(handle, &value) == PMPI_T_cvar_write(direct, &value), "write");
        MPI_T_cvar_handle_free(&handle);
        PMPI_T_cvar_handle_free(&direct);
        ++used;
    }
    check::that(used > 2, "{} control variables of the host's MPI are usable", used);
}

void members_have_their_names(const Lists& lists) {
    for (int number = 0, host = -1; number < static_cast<int>(lists.categories.size()); ++number) {
        const std::string& name = lists.categories[static_cast<std::size_t>(number)];
        int index = -1, controls = 0;
        if (name == "none") {
            ++host;
            continue;
        }
        MPI_T_category_get_info(number, nullptr, nullptr, nullptr, nullptr, &controls, nullptr, nullptr);
        std::vector<int> members(static_cast<std::size_t>(controls), -1), direct = members;
        check::that(MPI_T_category_get_cvars(number, controls, members.data()) == MPI_SUCCESS, "{}", name);
        if (is_ours(name)) {
            check::that(MPI_T_category_get_index(name.c_str(), &index) == MPI_SUCCESS && index == number,
                        "{} has the number {}", name, index);
            for (const int member : members)
                check::that(is_ours(lists.control[static_cast<std::size_t>(member)]), "member {}", member);
            check::that(controls == std::count_if(lists.control.begin(), lists.control.end(), is_ours),
                        "{} members", controls);
            continue;
        }
        PMPI_T_category_get_cvars(++host, controls, direct.data());
        for (std::size_t i = 0; i < members.size(); ++i)
            check::that(direct[i] < 0 || lists.control[static_cast<std::size_t>(members[i])] ==
                                             control_name(PMPI_T_cvar_get_info, direct[i]),
                        "member {} of {}", i, name);
    }
}

void exchange(int bytes, bool computes) {
    const int size = check::size_of(MPI_COMM_WORLD);
    const auto all = static_cast<std::size_t>(bytes * size);
    const std::vector<char> out(all, 'a');
    std::vector<char> in(all);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(out.data(), bytes, MPI_CHAR, in.data(), bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
    for (const double until = MPI_Wtime() + 0.005; computes && MPI_Wtime() < until;) {
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check::that(in == out, "the exchange of {} bytes", bytes);
}

class Counter {
  public:
    Counter(MPI_T_pvar_session session, const char* name, int var_class) : session_(session), name_(name) {
        int number = -1, count = 0;
        check::that(MPI_T_pvar_get_index(name, var_class, &number) == MPI_SUCCESS, "there is no {}", name);
        check::that(
            MPI_T_pvar_handle_alloc(session, number, nullptr, &handle_, &count) == MPI_SUCCESS && count == 1,
            "a handle of {}", name);
    }
    template <typename T = unsigned long long>
    T read() const {
        T value = 99;
        check::that(MPI_T_pvar_read(session_, handle_, &value) == MPI_SUCCESS, "{} is read", name_);
        return value;
    }
    MPI_T_pvar_handle handle() const { return handle_; }

  private:
    MPI_T_pvar_session session_;
    const char* name_;
    MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
};

void counters_count(MPI_T_pvar_session session) {
    const int ranks = check::size_of(MPI_COMM_WORLD);
    const bool counts = check::rank_of(MPI_COMM_WORLD) == 0;  // collectives are counted once
    const Counter offloaded(session, "offpath_collectives_offloaded", MPI_T_PVAR_CLASS_COUNTER);
    const Counter bytes(session, "offpath_collectives_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
    const Counter small(session, "offpath_collectives_on_host_small", MPI_T_PVAR_CLASS_COUNTER);
    const Counter overlap(session, "offpath_overlap_seconds", MPI_T_PVAR_CLASS_TIMER);
    const Counter lost(session, "offpath_devices_lost", MPI_T_PVAR_CLASS_COUNTER);
    exchange(200'000, false);
    check::that(offloaded.read() == 0, "it is not started");
    check::that(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS, "start");
    exchange(200'000, true);
    exchange(200'000, true);
    exchange(40'000, false);
    check::that(offloaded.read() == (counts ? 2 : 0), "{} were offloaded", offloaded.read());
    check::that(small.read() == (counts ? 1 : 0), "{} were small", small.read());
    check::that(bytes.read() == 400'000ULL * static_cast<unsigned>(ranks - 1), "{} bytes", bytes.read());
    check::that(overlap.read<double>() > 0.009, "{} s of overlap", overlap.read<double>());
    check::that(lost.read() == 0, "no device was lost");

    check::that(MPI_T_pvar_stop(session, bytes.handle()) == MPI_SUCCESS, "stop");
    exchange(200'000, false);
    check::that(bytes.read() == 400'000ULL * static_cast<unsigned>(ranks - 1), "it was stopped");
    check::that(MPI_T_pvar_start(session, bytes.handle()) == MPI_SUCCESS, "start again");
    unsigned long long value = 7;
    check::that(MPI_T_pvar_write(session, bytes.handle(), &value) == MPI_SUCCESS, "write");
    exchange(200'000, false);
    const unsigned long long expected = 7 + 200'000ULL * static_cast<unsigned>(ranks - 1);
    check::that(MPI_T_pvar_readreset(session, bytes.handle(), &value) == MPI_SUCCESS && value == expected,
                "{} bytes, where 7 were written", value);
    check::that(bytes.read() == 0, "it was reset");
    check::that(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS && offloaded.read() == 0,
                "all were reset");

    MPI_T_pvar_handle freed = bytes.handle();
    check::that(MPI_T_pvar_handle_free(session, &freed) == MPI_SUCCESS && freed == MPI_T_PVAR_HANDLE_NULL,
                "a handle is freed");
    MPI_T_pvar_session other = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_session_create(&other);
    check::that(MPI_T_pvar_read(other, offloaded.handle(), &value) != MPI_SUCCESS,
                "a handle has its session");
    MPI_T_pvar_session_free(&other);
}

// Those that the host's MPI lets a tool have are read through offpath.
void host_performance_variables_work(MPI_T_pvar_session session, const Names& names) {
    for (int number = 0, host = -1; number < static_cast<int>(names.size()); ++number) {
        if (is_ours(names[static_cast<std::size_t>(number)])) continue;
        ++host;
        int verbosity = 0, var_class = 0, bind = 0, readonly = 0, continuous = 0, atomic = 0, count = 0;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum enumeration = MPI_T_ENUM_NULL;
        char name[room] = "";
        int length = room;
        MPI_T_pvar_get_info(number, name, &length, &verbosity, &var_class, &type, &enumeration, nullptr,
                            nullptr, &bind, &readonly, &continuous, &atomic);
        // Open MPI 4.1 crashes in those of a network that is not there.
        if (bind != MPI_T_BIND_NO_OBJECT || std::strstr(name, "psm2") != nullptr) continue;
        MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL, direct = MPI_T_PVAR_HANDLE_NULL;
        const int error = PMPI_T_pvar_handle_alloc(session, host, nullptr, &direct, &count);
        check::that(MPI_T_pvar_handle_alloc(session, number, nullptr, &handle, &count) == error, "{}", name);
        if (error != MPI_SUCCESS) continue;
        std::vector<double> value(static_cast<std::size_t>(std::max(count, 0)) + 64), same = value;
        check::that(
            MPI_T_pvar_read(session, handle, value.data()) == PMPI_T_pvar_read(session, direct, same.data()),
            "{}", name);
        check::that(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS, "{}", name);
        PMPI_T_pvar_handle_free(session, &direct);
    }
}

void settings_switch(MPI_T_pvar_session session) {
    const bool counts = check::rank_of(MPI_COMM_WORLD) == 0;
    const Counter off(session, "offpath_collectives_on_host_turned_off", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_start(session, off.handle());
    const auto meet = [] {
        for (int i = 0; i < 20; ++i)
            MPI_Barrier(MPI_COMM_WORLD);
    };
    Control ops("offpath_ops"), messages("offpath_p2p"), whole("offpath");
    check::that(ops.read() == "all", "OFFPATH_OPS is {}", ops.read());
    check::that(messages.write("all") == MPI_T_ERR_CVAR_SET_NOT_NOW, "OFFPATH_P2P is for MPI_Init");
    check::that(ops.write("ifly") == MPI_T_ERR_CVAR_SET_NOT_NOW, "ifly is no operation");
    check::that(ops.write("iallgather") == MPI_SUCCESS && ops.read() == "iallgather",
                "OFFPATH_OPS is written");
    meet();
    exchange(200'000, false);
    check::that(off.read() == (counts ? 1 : 0), "{} were turned off", off.read());
    check::that(ops.write("") == MPI_SUCCESS, "all operations again");
    meet();
    exchange(200'000, false);
    check::that(whole.write("off") == MPI_SUCCESS, "off");
    meet();
    exchange(200'000, false);
    check::that(off.read() == (counts ? 2 : 0), "{} were turned off", off.read());
    check::that(whole.write("on") == MPI_SUCCESS, "on");
    meet();
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0, none = 0;
    const bool before = PMPI_T_cvar_get_num(&none) != MPI_SUCCESS;
    if (before && MPI_T_cvar_get_num(&none) == MPI_SUCCESS) std::abort();
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) std::abort();
    Lists early{};
    for (int i = 0; i < count_of(MPI_T_cvar_get_num); ++i)
        early.control.push_back(control_name(MPI_T_cvar_get_info, i));
    for (int i = 0; i < count_of(MPI_T_pvar_get_num); ++i)
        early.performance.push_back(performance_name(MPI_T_pvar_get_info, i));
    int wrote = 0;
    {
        Control least("offpath_min_bytes");
        if (least.read() != "0") std::abort();
        wrote = least.write("100000");
    }

    MPI_Init(&argc, &argv);
    check::that(wrote == MPI_SUCCESS, "a setting is written before MPI_Init");
    check::that(std::count_if(early.control.begin(), early.control.end(), is_ours) > 20, "settings");
    check::that(std::count_if(early.performance.begin(), early.performance.end(), is_ours) > 20, "counters");
    const Lists lists = list_all();
    keep_their_numbers(early.control, lists.control);
    keep_their_numbers(early.performance, lists.performance);
    host_control_variables_work(lists.control);
    members_have_their_names(lists);

    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    check::that(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "a session");
    counters_count(session);
    settings_switch(session);
    host_performance_variables_work(session, lists.performance);
    check::that(MPI_T_pvar_session_free(&session) == MPI_SUCCESS, "the session is freed");

    const int all = check::total_failures();
#ifdef OPEN_MPI
    // Open MPI 4.1 crashes in MPI_T_finalize behind MPI_Finalize.
    MPI_T_finalize();
    MPI_Finalize();
    return all == 0 ? 0 : 1;
#else
    MPI_Finalize();
    int number = -1;
    const bool works = MPI_T_cvar_get_index("offpath_verbose", &number) == MPI_SUCCESS &&
                       lists.control[static_cast<std::size_t>(number)] == "offpath_verbose";
    if (!works) std::fputs("FAILED after MPI_Finalize\n", stderr);
    MPI_T_finalize();
    return all == 0 && works ? 0 : 1;
#endif
}
