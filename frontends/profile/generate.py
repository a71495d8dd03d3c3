"""Generates the profiler's calls that follow from tables: the collectives, the calls that make communicators,
and those that are only named and timed. The others are written by hand in calls.cpp.

usage: generate.py CALLS.TXT COLLECTIVES.TXT MPI.H CALLS.CPP EXPORTS.MAP HANDWRITTEN.CPP...
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi/calls"))

import table
import wrappers
from offpath import collectives

HEAD = """\
// Generated from calls.txt and collectives.txt by frontends/profile/generate.py.
#include "profile/scope.h"

#include <offpath/types.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

using namespace offpath::profile;

"""
# What a collective moves, in the words of its parameters. Those that are not here are named and timed.
MOVES = {
    "alltoall": "kind.bytes = bytes_of(recvcount, recvtype);",
    "alltoallv": (
        "const bool in_place = sendbuf == MPI_IN_PLACE;\n    kind.list = vectors_of(comm, in_place ?"
        " recvcounts : sendcounts, in_place ? recvtype : sendtype, recvcounts, recvtype);"
    ),
    "alltoallw": (
        "const bool in_place = sendbuf == MPI_IN_PLACE;\n    kind.list = typed_vectors_of(comm, in_place ?"
        " recvcounts : sendcounts, in_place ? recvtypes : sendtypes, recvcounts, recvtypes);"
    ),
    "gatherv": (
        "if (is_root(comm, root)) kind.list = blocks_of(comm, recvcounts, recvtype);\n"
        "    else kind.bytes = bytes_of(sendcount, sendtype);\n    kind.peer = root;"
    ),
    "scatterv": (
        "if (is_root(comm, root)) kind.list = blocks_of(comm, sendcounts, sendtype);\n"
        "    else kind.bytes = bytes_of(recvcount, recvtype);\n    kind.peer = root;"
    ),
    "allgather": "kind.bytes = bytes_of(recvcount, recvtype);",
    "allgatherv": "kind.list = blocks_of(comm, recvcounts, recvtype);",
    "bcast": "kind.bytes = bytes_of(count, datatype);\n    kind.peer = root;",
    "barrier": "",
    "allreduce": "kind.bytes = bytes_of(count, datatype);",
    "reduce": "kind.bytes = bytes_of(count, datatype);\n    kind.peer = root;",
    "gather": (
        "kind.bytes = is_root(comm, root) ? bytes_of(recvcount, recvtype) : bytes_of(sendcount,"
        " sendtype);\n    kind.peer = root;"
    ),
    "scatter": (
        "kind.bytes = is_root(comm, root) ? bytes_of(sendcount, sendtype) : bytes_of(recvcount,"
        " recvtype);\n    kind.peer = root;"
    ),
    "reduce_scatter": "kind.list = blocks_of(comm, recvcounts, datatype);",
    "reduce_scatter_block": "kind.bytes = bytes_of(recvcount, datatype);",
    "scan": "kind.bytes = bytes_of(count, datatype);",
    "exscan": "kind.bytes = bytes_of(count, datatype);",
}


# What an operation on a window moves.
ACCESSES = dict.fromkeys(("Fetch_and_op", "Compare_and_swap"), "bytes_of(1, datatype)") | dict.fromkeys(
    (
        *("Put", "Get", "Accumulate", "Get_accumulate"),
        *("Rput", "Rget", "Raccumulate", "Rget_accumulate"),
    ),
    "bytes_of(target_count, target_type)",
)


def on_window(call: table.Call, short: str, site: str) -> str:
    """The body of a call on a window: which one, the target, and the bytes."""
    text = f"    CallKind kind = kind_of({site});\n    kind.window = recording->window(win);\n"
    if any(p.name == "rank" for p in call.parameters):
        text += "    kind.peer = rank == MPI_PROC_NULL ? -2 : rank;\n"
    if short in ACCESSES:
        text += f"    kind.bytes = {ACCESSES[short]};\n"
    leave = "recording->leave(kind)"
    if call.parameters[-1].kind == "request*":
        return text + f"    recording->posted(*request, {leave});\n"
    return text + f"    {leave};\n"


def function(call: table.Call, body: str) -> str:
    return (
        f'extern "C" OFFPATH_API int {call.name}({wrappers.parameters(call)}) {{\n'
        "    Scope recording;\n"
        f"    const int mpi_result = P{call.name}({wrappers.arguments(call)});\n"
        f"    if (!recording) return mpi_result;\n{body}    return mpi_result;\n}}\n"
    )


def body_of(call: table.Call, rows: dict[str, str]) -> str:
    short = call.name.partition("_")[2]
    site = f'"{short}", __builtin_return_address(0)'
    blocking = short.lower()
    name = next((row for row in (blocking, blocking.removeprefix("i")) if row in rows), None)
    makes = call.parameters and call.parameters[-1].kind == "comm*"
    if name is None and call.parameters and call.parameters[-1].kind == "win*":
        size = "static_cast<std::uint64_t>(size)" if any(p.name == "size" for p in call.parameters) else "0"
        allocated = "true" if short == "Win_allocate" else "false"
        return (
            f"    recording->leave(kind_of({site}));\n"
            f"    recording->window_made(*win, comm, {size}, {allocated});\n"
        )
    if name is None and any(p.kind == "win" for p in call.parameters):
        return on_window(call, short, site)
    if name is None:
        made = f"    recording->communicator_made(*{call.parameters[-1].name});\n" if makes else ""
        return f"    recording->leave(kind_of({site}));\n{made}"
    moves = MOVES.get(name, "")
    text = f"    CallKind kind = collective_kind(*recording.operator->(), {site}, comm);\n"
    text += f"    {moves}\n" if moves else ""
    if name == blocking:
        return text + "    recording->leave_collective(kind);\n"
    return text + "    recording->posted(*request, recording->leave_collective(kind));\n"


def main() -> None:
    mpi, calls_path, rows_path, header, out, map_path, *hand_paths = sys.argv[1:]
    by_hand = set()
    for path in hand_paths:
        text = Path(path).read_text()
        by_hand |= set(re.findall(r"\bint (MPI_\w+)\(", text))
        by_hand |= {f"MPI_{name}" for name in re.findall(r"^PROFILED_\w+\((\w+)\)", text, re.M)}
    try:
        rows = {row.name: row for row in collectives.read(Path(rows_path))}
        calls = wrappers.read(Path(calls_path), Path(rows_path), Path(header))
    except (table.TableError, collectives.TableError) as error:
        sys.exit(f"generate.py: {error}")
    generated = [call for call in calls if call.name not in by_hand]
    collectives.write(Path(out), HEAD + "\n".join(function(c, body_of(c, rows)) for c in generated))
    symbols = by_hand | {call.name for call in generated}
    if mpi == "openmpi":
        symbols |= {each for call in calls for each in wrappers.fortran_symbols(call, mpi)}
    collectives.write(Path(map_path), wrappers.exports(symbols))


if __name__ == "__main__":
    main()
