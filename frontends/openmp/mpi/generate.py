#!/usr/bin/env python3
"""Writes what follows from an MPI's mpi.h: generate.py HEADER OBJECTS.cpp CALLS.c

OBJECTS.cpp defines the predefined objects that are symbols (predefined.h). CALLS.c defines every MPI call as
a weak function that reports that it is not supported; the library's own definitions take precedence.
"""

import re
import sys
from pathlib import Path

OBJECT = re.compile(r"extern struct ompi_predefined_(\w+)_t (\w+);")
CALL = re.compile(r"\b(P?MPI_\w+|OMPI_C_MPI_\w+)\s*\(")
CALL_LINE = re.compile(
    r"^\s*(OMPI_DECLSPEC\s+)?(int|double|MPI_Aint|MPI_Fint|MPI_\w+)\s+\**P?(MPI|OMPI_C_MPI)_\w+\s*\("
)


def objects(header: str) -> str:
    found = OBJECT.findall(header)
    kinds = "".join(
        f"struct ompi_predefined_{kind}_t {{ long unused; }};\n"
        for kind in dict.fromkeys(k for k, _ in found)
    )
    definitions = "".join(f"struct ompi_predefined_{kind}_t {name} = {{0}};\n" for kind, name in found)
    rows = "".join(f'    {{"{name}", &{name}}},\n' for _, name in found)
    table = f"constexpr Predefined table[] = {{\n{rows}}};\n" if found else ""
    span = "{table}" if found else ""
    return (
        '#include <mpi.h>\n\n#include "openmp/mpi/predefined.h"\n\n'
        f'{kinds}\nextern "C" {{\n{definitions}}}\n\n'
        f"namespace offpath::region_mpi {{\n{table}const std::span<const Predefined> predefined{span};\n}}\n"
    )


def calls(header: str) -> str:
    names = dict.fromkeys(
        match.group(1)
        for line in header.splitlines()
        if CALL_LINE.match(line) and (match := CALL.search(line))
    )
    weak = '__attribute__((weak, visibility("default"))) int'
    rows = "".join(
        f'{weak} {name}(void) {{ return offpath_region_mpi_unsupported("{name}"); }}\n' for name in names
    )
    return f"int offpath_region_mpi_unsupported(const char* call);\n\n{rows}"


def main() -> None:
    path = Path(sys.argv[1])
    prototypes = path.with_name("mpi_proto.h")  # MPICH's
    header = path.read_text() + (prototypes.read_text() if prototypes.exists() else "")
    Path(sys.argv[2]).write_text(objects(header))
    Path(sys.argv[3]).write_text(calls(header))


main()
