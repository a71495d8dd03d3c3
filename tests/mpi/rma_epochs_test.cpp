// One-sided calls outside their epochs, on a window that the device serves: each returns MPI_ERR_RMA_SYNC and
// says why in one line.
#include "check.h"
#include "window_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace {

MPI_Win win = MPI_WIN_NULL;

// What `call` writes to the standard error output.
template <typename Call>
std::string said_by(Call call) {
    const int file = memfd_create("said", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    call();
    dup2(before, STDERR_FILENO);
    close(before);
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    if (pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text.clear();
    close(file);
    return text;
}

// Checks that the call fails, and that its line has `name` and `why`.
template <typename Call>
void expect_line(const char* name, const std::string& why, Call call) {
    int error = MPI_SUCCESS;
    const std::string line = said_by([&] { error = call(); });
    const std::string wanted =
        fmt::format("offpath: rank {}: {}: {} [OFP-0406]\n", check::rank_of(MPI_COMM_WORLD), name, why);
    check::that(error == MPI_ERR_RMA_SYNC, "{}: the error is {}", name, error);
    check::that(line == wanted, "{}: it says '{}'", name, line);
}

void test_outside_of_epochs() {
    int value = 1, other = 0;
    const std::string none =
        "no epoch of this window gives access to rank 0; MPI_Win_fence, MPI_Win_start or a lock begins one";
    expect_line("MPI_Put", none, [&] { return MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win); });
    expect_line("MPI_Get", none, [&] { return MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win); });
    expect_line("MPI_Rput", none, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        return MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request);
    });
    expect_line("MPI_Accumulate", none,
                [&] { return MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win); });
    expect_line("MPI_Fetch_and_op", none,
                [&] { return MPI_Fetch_and_op(&value, &other, MPI_INT, 0, 0, MPI_SUM, win); });
    expect_line("MPI_Compare_and_swap", none,
                [&] { return MPI_Compare_and_swap(&value, &value, &other, MPI_INT, 0, 0, win); });
    expect_line("MPI_Win_flush", "no lock of rank 0 is held", [] { return MPI_Win_flush(0, win); });
    expect_line("MPI_Win_flush_local_all", "no lock is held", [] { return MPI_Win_flush_local_all(win); });
    expect_line("MPI_Win_unlock", "no lock of rank 0 is held", [] { return MPI_Win_unlock(0, win); });
    expect_line("MPI_Win_unlock_all", "no lock of all ranks is held", [] { return MPI_Win_unlock_all(win); });
    expect_line("MPI_Win_complete", "no MPI_Win_start on this window came before",
                [] { return MPI_Win_complete(win); });
    expect_line("MPI_Win_wait", "no MPI_Win_post on this window came before",
                [] { return MPI_Win_wait(win); });
}

void test_inside_of_another() {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    const std::string locked = "the epoch that MPI_Win_lock began on this window has not ended";
    expect_line("MPI_Win_fence", locked, [] { return MPI_Win_fence(0, win); });
    expect_line("MPI_Win_free", locked, [] { return MPI_Win_free(&win); });
    expect_line("MPI_Win_lock", locked, [] { return MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win); });
    MPI_Win_unlock(0, win);
    MPI_Win_lock_all(0, win);
    const std::string all = "the epoch that MPI_Win_lock_all began on this window has not ended";
    expect_line("MPI_Win_lock_all", all, [] { return MPI_Win_lock_all(0, win); });
    expect_line("MPI_Win_start", all, [] {
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Win_get_group(win, &group);
        const int error = MPI_Win_start(group, 0, win);
        MPI_Group_free(&group);
        return error;
    });
    int value = 1;
    MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    {
        WindowMemory<int> memory(100);
        MPI_Win_create(memory.data(), 100 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        test_outside_of_epochs();
        test_inside_of_another();
        MPI_Win_free(&win);
    }
    return check::finish();
}
