"""What the generators of the profiler and the tracer share. Both wrap the calls of one MPI library, including
those that the front end does not intercept."""

from collections.abc import Iterable
from pathlib import Path

import generate as front_end
import table
from table import Call, Parameter

# These take no time that matters, and calls.txt has no full types of their parameters.
_LEFT_OUT = ("MPI_Pcontrol", "MPI_Comm_create_errhandler", "MPI_Buffer_attach", "MPI_Win_detach")


def read(calls: Path, rows: Path, header: Path) -> list[Call]:
    declared = table.declarations(header)
    found = table.read(calls, rows, declared) + table.read(calls, rows, declared, known=True)
    return [call for call in found if call.name not in _LEFT_OUT]


def parameters(call: Call) -> str:
    return ", ".join(_c_type(p, call) + p.name for p in call.parameters)


def arguments(call: Call) -> str:
    return ", ".join(p.name for p in call.parameters)


def fortran_symbols(call: Call, mpi: str) -> list[str]:
    """The names of the front end's binding for Fortran."""
    return front_end.fortran_symbols(call, mpi)


def exports(symbols: Iterable[str]) -> str:
    """A linker's version script."""
    lines = "".join(f"    {symbol};\n" for symbol in sorted([*symbols, "__asan_default_options"]))
    return "{\n  global:\n" + lines + "  local: *;\n};\n"


def _c_type(p: Parameter, call: Call) -> str:
    if p.base == "index":
        return "int* "
    # A broadcast writes its only buffer.
    if p.kind == "buffer" and "cast" in call.name.lower():
        return "void* "
    return front_end.c_type(p)
