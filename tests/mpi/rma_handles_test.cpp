// What the MPI_Win of a window on the device reports, at every thread level: attributes, group, info, name,
// error handler, and attributes of the program. With argument `single`: at MPI_THREAD_SINGLE. With `hints`:
// only the hints by which a program says who serves a window.
#include <cstring>
#include <string_view>

#include "check.h"

namespace {

MPI_Win handled = MPI_WIN_NULL;
int handled_class = MPI_SUCCESS;

void handle(MPI_Win* win, int* error, ...) {
    handled = *win;
    PMPI_Error_class(*error, &handled_class);
}

void* attribute(MPI_Win win, int keyval) {
    void* value = nullptr;
    int found = 0;
    MPI_Win_get_attr(win, keyval, static_cast<void*>(&value), &found);
    check::that(found != 0, "attribute {} of a window", keyval);
    return value;
}

int number(MPI_Win win, int keyval) {
    const auto* value = static_cast<const int*>(attribute(win, keyval));
    return value != nullptr ? *value : -1;
}

void expect(MPI_Win win, MPI_Comm comm, const void* base, MPI_Aint bytes, int unit, int flavor) {
    check::that(attribute(win, MPI_WIN_BASE) == base, "the base of a window of flavor {}", flavor);
    const auto* size = static_cast<const MPI_Aint*>(attribute(win, MPI_WIN_SIZE));
    check::that(size != nullptr && *size == bytes, "the size of a window of flavor {}", flavor);
    check::that(number(win, MPI_WIN_DISP_UNIT) == unit, "the unit of a window of flavor {}", flavor);
    check::that(number(win, MPI_WIN_CREATE_FLAVOR) == flavor, "the flavor of a window: {} instead of {}",
                number(win, MPI_WIN_CREATE_FLAVOR), flavor);
    check::that(number(win, MPI_WIN_MODEL) == MPI_WIN_UNIFIED, "the model of a window");
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group expected = MPI_GROUP_NULL;
    MPI_Win_get_group(win, &group);
    MPI_Comm_group(comm, &expected);
    int same = MPI_UNEQUAL;
    MPI_Group_compare(group, expected, &same);
    check::that(same == MPI_IDENT, "the group of a window of flavor {}", flavor);
    MPI_Group_free(&group);
    MPI_Group_free(&expected);
}

int seen_on_delete = 0;

int on_delete(MPI_Win win, int, void* value, void* expected_base) {
    if (attribute(win, MPI_WIN_BASE) == expected_base && value == &handled) ++seen_on_delete;
    return MPI_SUCCESS;
}

void test_window(MPI_Comm comm) {
    const int rank = check::rank_of(comm);
    const int size = check::size_of(comm);
    std::vector<int> memory(static_cast<std::size_t>(100 + rank), -1);
    const auto bytes = static_cast<MPI_Aint>(memory.size() * sizeof(int));
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "false");
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), bytes, 4, info, comm, &win);
    expect(win, comm, memory.data(), bytes, 4, MPI_WIN_FLAVOR_CREATE);
    MPI_Info_free(&info);
    MPI_Win_get_info(win, &info);
    check::that(info != MPI_INFO_NULL, "the info of a window");
    MPI_Info_free(&info);
    MPI_Win_set_name(win, "the program's");
    char name[MPI_MAX_OBJECT_NAME] = {};
    int length = 0;
    MPI_Win_get_name(win, name, &length);
    check::that(std::strcmp(name, "the program's") == 0, "a window's name is '{}'", name);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, memory.data());
    MPI_Win_set_attr(win, keyval, &handled);
    check::that(attribute(win, keyval) == &handled, "an attribute of the program's own");

    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Win_create_errhandler(handle, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    check::that(MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win) != MPI_SUCCESS && handled == win &&
                    handled_class == MPI_ERR_RMA_SYNC,
                "a put outside an epoch: error class {}", handled_class);
    MPI_Aint shared = 0;
    int unit = 0;
    void* base = nullptr;
    handled = MPI_WIN_NULL;
    check::that(MPI_Win_shared_query(win, 0, &shared, &unit, static_cast<void*>(&base)) != MPI_SUCCESS &&
                    handled == win && handled_class == MPI_ERR_RMA_FLAVOR,
                "a query for shared memory: error class {}", handled_class);

    const int right = (rank + 1) % size;
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, right, 1, 1, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    check::that(memory[1] == (rank + size - 1) % size, "a put under a fence: {}", memory[1]);
    MPI_Win_free(&win);
    check::that(win == MPI_WIN_NULL && seen_on_delete == 1, "the callback at a window's end");
    seen_on_delete = 0;
    MPI_Win_free_keyval(&keyval);

    MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, static_cast<void*>(&base), &win);
    expect(win, comm, base, 64, 8, MPI_WIN_FLAVOR_ALLOCATE);
    MPI_Win_free(&win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    expect(win, comm, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    MPI_Win_attach(win, memory.data(), 0);
    MPI_Win_detach(win, memory.data());
    MPI_Win_free(&win);
}

// The hints of the program say who serves a window: the host's MPI or the device.
void test_hints() {
    for (const char* who : {"host", "device"}) {
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        MPI_Info_set(info, "offpath", who);
        int* memory = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        MPI_Win_allocate(4096, 4, info, MPI_COMM_WORLD, static_cast<void*>(&memory), &win);
        MPI_Info_free(&info);
        // In a window on the device, the host's MPI knows only this rank.
        MPI_Group group = MPI_GROUP_NULL;
        int size = 0;
        PMPI_Win_get_group(win, &group);
        PMPI_Group_size(group, &size);
        MPI_Group_free(&group);
        const int expected = std::string_view(who) == "host" ? check::size_of(MPI_COMM_WORLD) : 1;
        check::that(size == expected, "a window that the program wants on the {} has {} ranks there", who,
                    size);
        MPI_Win_free(&win);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const bool single = argc > 1 && std::string_view(argv[1]) == "single";
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    if (argc > 1 && std::string_view(argv[1]) == "hints") {
        test_hints();
        return check::finish();
    }
    test_window(MPI_COMM_WORLD);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank_of(MPI_COMM_WORLD), &reversed);
    test_window(reversed);
    MPI_Comm_free(&reversed);
    test_hints();
    return check::finish();
}
