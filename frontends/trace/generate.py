"""Generates the tracer's calls: all that the front end knows of, except those of life.cpp.

usage: generate.py CALLS.TXT COLLECTIVES.TXT MPI.H CALLS.CPP EXPORTS.MAP
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi/calls"))

import table
import wrappers
from offpath import collectives

HEAD = """\
// Generated from calls.txt and collectives.txt by frontends/trace/generate.py.
#include "frontends/trace/scope.h"

#include <offpath/types.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

using namespace offpath::traced;

"""
BY_HAND = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")
POLLS = ("Test", "Testall", "Testany", "Testsome", "Iprobe", "Improbe", "Request_get_status", "Win_test")


def amount(call: table.Call) -> str:
    """Sets the bytes of a call: what the rank sends, or what it receives where only the root's numbers for
    sending have a meaning."""
    kinds = {p.name: p.kind for p in call.parameters}
    sides = ["send", "recv"]
    if "scatter" in call.name.lower() and "sendbuf" in kinds and "recvtype" in kinds:
        sides.reverse()
    found = [expression for side in sides if (expression := side_bytes(kinds, side))]
    if not found:
        return ""
    if len(found) == 2 and f"{sides[0]}buf" in kinds:
        found = [f"{sides[0]}buf == MPI_IN_PLACE ? {found[1]} : {found[0]}"]
    return f"        scope.bytes = {found[0]};\n"


def side_bytes(kinds: dict[str, str], side: str) -> str | None:
    for count in (f"{side}count", "count", "origin_count", "result_count"):
        for name in (f"{side}type", "datatype", "origin_type", "result_type"):
            if kinds.get(count) == "int" and kinds.get(name) == "type":
                return f"bytes_of({count}, {name})"
    counts, name = f"{side}counts", f"{side}type" if f"{side}type" in kinds else "datatype"
    if kinds.get(counts) == "int[]" and kinds.get(name) == "type" and "comm" in kinds:
        return f"bytes_of_all(comm, {counts}, {name})"
    return None


def peer(call: table.Call) -> str:
    names = [p.name for p in call.parameters if p.kind == "int"]
    for name in ("dest", "source", "root", "rank"):
        if name in names:
            return f"        scope.peer = peer_of({name});\n"
    return ""


def function(call: table.Call, number: int) -> str:
    poll = call.name.partition("_")[2] in POLLS
    # The numbers of neighbours' arrays are not known here.
    facts = "" if poll or "neighbor" in call.name.lower() else amount(call) + peer(call)
    return (
        f'extern "C" OFFPATH_API int {call.name}({wrappers.parameters(call)}) {{\n'
        f'    static const auto mpi_call = reinterpret_cast<decltype(&{call.name})>(next("{call.name}"));\n'
        f"    {'Poll' if poll else ''}Scope scope({number});\n"
        + (f"    if (scope) {{\n{facts}    }}\n" if facts else "")
        + f"    return mpi_call({wrappers.arguments(call)});\n}}\n"
    )


def main() -> None:
    _, calls_path, rows_path, header, out, map_path = sys.argv[1:]
    try:
        calls = wrappers.read(Path(calls_path), Path(rows_path), Path(header))
    except table.TableError as error:
        sys.exit(f"generate.py: {error}")
    calls = [call for call in calls if call.name not in BY_HAND]
    names = ",\n    ".join(f'"{call.name}"' for call in calls)
    text = f"const char* const offpath::traced::call_names[] = {{\n    {names}}};\n"
    text += f"const std::uint16_t offpath::traced::call_count = {len(calls)};\n\n"
    collectives.write(Path(out), HEAD + text + "\n".join(function(c, i) for i, c in enumerate(calls)))
    collectives.write(Path(map_path), wrappers.exports([*BY_HAND, *(call.name for call in calls)]))


if __name__ == "__main__":
    main()
