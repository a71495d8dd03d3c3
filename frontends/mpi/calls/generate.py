"""Generates code for one MPI library from calls.txt and collectives.txt: the C functions that only call a
hook, the bindings for Fortran, and the list of symbols that the front end exports.

usage: generate.py openmpi|mpich|abi CALLS.TXT COLLECTIVES.TXT MPI.H C.CPP FORTRAN.CPP EXPORTS.MAP
"""

import sys
from pathlib import Path

import table
from offpath import collectives
from table import Call, Parameter

BANNER = "// Generated from frontends/mpi's calls.txt and collectives.txt by calls/generate.py.\n"
C_HEAD = """\
#include <mpi.h>
#include <offpath/types.h>

#include "calls/hooks.h"
#include "datatypes/large_counts.h"

using namespace offpath::mpi;

"""
FORTRAN_HEAD = """\
#include "calls/fortran.h"

#include <offpath/types.h>

namespace offpath::mpi::fortran {

"""
FORTRAN_FOOT = """
}  // namespace offpath::mpi::fortran
"""


def c_type(p: Parameter) -> str:
    if p.base in table.HANDLES:
        handle = "MPI_Datatype" if p.base == "type" else f"MPI_{table.HANDLES[p.base]}"
        return {
            "": f"{handle} ",
            "*": f"{handle}* ",
            "&": f"{handle}* ",
            "[n]": f"const {handle}* ",
            "[n]&": f"{handle}* ",
        }[p.shape]
    if p.base == "buffer":
        # The names of the buffers tell which are written.
        return "void* " if p.name in ("base", "recvbuf", "result") else "const void* "
    if p.base == "status":
        return "MPI_Status* "
    return {
        "int": "int ", "aint": "MPI_Aint ", "logical": "int ",
        "int[]": "const int* ", "aint[]": "const MPI_Aint* ", "weights": "const int* ",
        "logical[n]": "const int* ", "int*": "int* ", "aint*": "MPI_Aint* ", "logical*": "int* ",
        "pointer*": "void* ",
    }[p.base + p.shape]  # fmt: skip


def c_function(call: Call) -> str:
    parameters = ", ".join(c_type(p) + p.name for p in call.parameters)
    arguments = ", ".join(p.name for p in call.parameters)
    # MPI_Comm_create_group is collective over the group only.
    collective = call.parameters[0].name == "comm" and call.name != "MPI_Comm_create_group"
    before = "    offpath::mpi::before_collective(comm);\n" if collective else ""
    made_from, made = call.parameters[0].name, call.parameters[-1].name
    return (
        f'extern "C" OFFPATH_API int {call.name}({parameters}) {{\n'
        f"{before}    const int result = P{call.name}({arguments});\n"
        f"    return result == MPI_SUCCESS ? {call.hook}({made_from}, {made}) : result;\n}}\n"
    )


def narrowed(p: Parameter, call: Call) -> str:
    """Returns the argument of the call with int counts, made from that of the form with large counts."""
    if p.kind == "int" and p.name == "disp_unit":
        return "Narrowed::displacement_unit(disp_unit)"
    if p.kind == "int" and p.name.endswith("count"):
        return f"{p.name}_.count()"
    if p.kind == "type":
        return f"{large_count_of(p, call).name}_.type()"
    return p.name


def large_count_of(type_: Parameter, call: Call) -> Parameter:
    """Returns the count of elements of this type, which is the nearest count before it."""
    before = call.parameters[: call.parameters.index(type_)]
    return [p for p in before if p.kind == "int" and p.name.endswith("count")][-1]


def large_function(call: Call) -> str:
    """Returns the code of MPI_X_c, which calls MPI_X."""

    def large(p: Parameter) -> str:
        if p.kind == "int" and p.name.endswith("count"):
            return f"MPI_Count {p.name}"
        return ("MPI_Aint " if p.name == "disp_unit" else c_type(p)) + p.name

    parameters = ", ".join(large(p) for p in call.parameters)
    arguments = ", ".join(p.name for p in call.parameters)
    types = [p for p in call.parameters if p.kind == "type"]
    counts = [f"{large_count_of(p, call).name}_" for p in types]
    owner = next(
        (
            p.name if p.kind == "comm" else f"OfWindow{{{p.name}}}"
            for p in call.parameters
            if p.kind in ("comm", "win")
        ),
        "MPI_COMM_WORLD",
    )
    text = f'extern "C" OFFPATH_API int {call.large}({parameters}) {{\n'
    text += f"    if (!active()) return P{call.large}({arguments});\n"
    for p, count in zip(types, counts, strict=True):
        text += f"    const Narrowed {count}({count[:-1]}, {p.name});\n"
    if counts:
        text += (
            f"    if ({' || '.join(f'!{count}.good()' for count in counts)}) return refuse_count({owner});\n"
        )
    return text + f"    return {call.name}({', '.join(narrowed(p, call) for p in call.parameters)});\n}}\n"


def fortran_type(p: Parameter) -> str:
    if p.base in ("buffer", "pointer"):
        return "void* "
    if p.kind == "handler":
        return "Procedure "
    scalar = "MPI_Aint" if p.base == "aint" else "MPI_Fint"
    written = "*" in p.shape or "&" in p.shape or p.base in ("index", "status")
    return f"{scalar}* " if written else f"const {scalar}* "


def length(p: Parameter, call: Call) -> str:
    if p.length in ("peers", "sources", "destinations", "dimensions"):
        count = f"{p.length}(*comm)"
        # A buffer that is not sent from needs no datatypes.
        return f"is_in_place(sendbuf) ? 0 : {count}" if p.name.startswith("send") else count
    if p.length not in [other.name for other in call.parameters]:
        raise table.TableError(f"{call.name}: {p.length} is no length")
    return f"*{p.length}"


def to_c(p: Parameter, call: Call) -> str:
    """Returns the C argument, made from the Fortran one. After the call, temporaries write results back."""
    if p.kind == "argv":
        return "nullptr"
    if p.kind == "handler":
        return f"stand_in_for_procedure({p.name})"
    if p.base in table.HANDLES:
        handle = table.HANDLES[p.base]
        return {
            "": f"MPI_{handle}_f2c(*{p.name})",
            "*": f"Out<{handle}>({p.name})",
            "&": f"InOut<{handle}>({p.name})",
        }.get(
            p.shape
        ) or f"{'InOutArray' if p.shape == '[n]&' else 'Array'}<{handle}>({p.name}, {length(p, call)})"
    match p.base + p.shape:
        case "int" | "aint":
            return f"*{p.name}"
        case "int[]" | "aint[]" | "int*" | "aint*" | "pointer*":
            return p.name
        case "buffer":
            return f"choice({p.name})"
        case "weights":
            return f"weights_of({p.name})"
        case "logical":
            return f"*{p.name} != 0"
        case "logical*":
            return f"LogicalOut({p.name})"
        case "logical[n]":
            return f"Logicals({p.name}, {length(p, call)})"
        case "index*":
            return f"IndexOut({p.name})"
        case "index[n]":
            return f"IndicesOut({p.name}, {p.length})"
        case "status*":
            return f"StatusOut({p.name})"
        case "status[n]":
            return f"StatusesOut({p.name}, {length(p, call)})"
    raise table.TableError(f"{call.name}: {p.kind} has no conversion")


def fortran_symbols(call: Call, mpi: str) -> list[str]:
    """Returns the names of the Fortran function: first the function itself, then its aliases.

    Open MPI's bindings for mpif.h, `use mpi` and `use mpi_f08` call PMPI_ in C. MPICH's call MPI_, except for
    the part of mpi_f08 that takes no buffer. The standard's ABI leaves the bindings for Fortran to separate
    libraries, which call MPI_ or are unknown to us.
    """
    if mpi == "abi" or not call.for_fortran:
        return []
    prefix, _, stem = call.name.lower().partition("_")
    plain = f"{prefix}_{stem}"
    if mpi == "mpich" and not call.by_hand:
        return [] if call.has_buffer else [f"{plain}_f08_"]
    if mpi == "mpich":
        return [f"{plain}_", plain, f"{plain}__", plain.upper(), f"{plain}_f08_"]
    names = [
        f"o{prefix}_{stem}_f",
        plain,
        f"{plain}_",
        f"{plain}__",
        f"{prefix.upper()}_{stem.upper()}",
        f"{plain}_f08_",
    ]
    if any(p.kind == "pointer*" for p in call.parameters) and not call.by_hand:
        names += [
            f"{plain}_cptr",
            f"{plain}_cptr_",
            f"{plain}_cptr__",
            f"{prefix.upper()}_{stem.upper()}_CPTR",
            f"o{prefix}_{stem}_cptr_f",
        ]
    return names


def fortran_function(call: Call, mpi: str) -> str:
    symbols = fortran_symbols(call, mpi)
    if not symbols:
        return ""
    shown = [p for p in call.parameters if p.kind != "argv"]
    parameters = ", ".join([fortran_type(p) + p.name for p in shown] + ["MPI_Fint* ierror"])
    arguments = "" if call.by_hand else ", ".join(to_c(p, call) for p in call.parameters)
    body = f"report({call.name}({arguments}), ierror)"
    if call.by_hand:
        body = f"{call.name.partition('_')[2].lower()}({', '.join(p.name for p in shown)}, ierror)"
    text = f'extern "C" OFFPATH_API void {symbols[0]}({parameters}) {{\n    {body};\n}}\n'
    for other in symbols[1:]:
        text += (
            f'extern "C" OFFPATH_API decltype({symbols[0]}) {other} __attribute__((alias("{symbols[0]}")));\n'
        )
    return text


def main() -> None:
    mpi, calls_path, rows_path, header, c_path, fortran_path, map_path = sys.argv[1:]
    try:
        calls = table.read(Path(calls_path), Path(rows_path), table.declarations(Path(header)))
        c_text = BANNER + C_HEAD
        c_text += "\n".join(
            [c_function(call) for call in calls if call.hook]
            + [large_function(call) for call in calls if call.large and call.generated]
        )
        fortran_text = BANNER + FORTRAN_HEAD
        fortran_text += "\n".join(text for call in calls if (text := fortran_function(call, mpi)))
        fortran_text += FORTRAN_FOOT
        symbols = [call.name for call in calls] + [call.large for call in calls if call.large]
        symbols += [symbol for call in calls for symbol in fortran_symbols(call, mpi)]
        symbols += ["free", "realloc", "reallocarray"]  # program_memory/watched_calls.cpp
        if mpi == "mpich":
            symbols.append("MPII_Errhandler_set_cxx")  # runtime/error_handlers.cpp
    except table.TableError as error:
        sys.exit(f"generate.py: {error}")
    collectives.write(Path(c_path), c_text)
    collectives.write(Path(fortran_path), fortran_text)
    collectives.write(
        Path(map_path),
        "{\n  global: offpath_*;\n    MPI_T_*;\n    __asan_default_options;\n"
        + "".join(f"    {symbol};\n" for symbol in symbols)
        + "  local: *;\n};\n",
    )


if __name__ == "__main__":
    main()
