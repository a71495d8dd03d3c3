"""Writes how the benchmark posts each collective, from the rows of collectives.txt that have a shape.

usage: generate.py COLLECTIVES.TXT ROWS.CPP
"""

import sys
from pathlib import Path

from offpath import collectives

HEAD = """\
// Generated from frontends/mpi/collectives/collectives.txt by generate.py.
#include "operations.h"
#include "shapes.h"

namespace mpi_bench {

const std::vector<OperationEntry>& collectives() {
    static const std::vector<OperationEntry> rows = {
"""
TAIL = """\
    };
    return rows;
}

}  // namespace mpi_bench
"""
# What is passed for a parameter: by its name, else by its kind.
NAMED = {
    "sendbuf": "op.send()",
    "recvbuf": "op.receive()",
    "buf": "op.buffer()",
    "sendcounts": "op.counts()",
    "recvcounts": "op.counts()",
    "root": "0",
}
KINDS = {"int": "op.count()", "type": "op.type()", "op": "MPI_SUM", "comm": "op.comm()"}


def argument(kind: str, name: str, receives: bool) -> str:
    """`receives`: the displacements that are just `displs` are of what is received."""
    if name in NAMED:
        return NAMED[name]
    if name.endswith("displs"):
        side = "receive" if name[0] == "r" or (name[0] == "d" and receives) else "send"
        return f"op.{side}_{'displacements' if kind == 'aint[]' else 'offsets'}()"
    if kind.startswith("type["):
        return "op.types()"
    return KINDS[kind]


def entry(row: collectives.Collective) -> str:
    parameters = [text.strip().rsplit(" ", 1) for text in row.parameters.split(",")]
    names = [name for _, name in parameters]
    arguments = [argument(kind, name, "recvcounts" in names) for kind, name in parameters]
    descending = "true" if any(name.endswith("displs") for name in names) else "false"
    return (
        f'        {{"{row.op}", shapes::{row.shape}, {descending},\n'
        "         [](const Operation& op, std::vector<MPI_Request>& requests) {\n"
        f"             MPI_I{row.name}({', '.join(arguments)}, add(requests));\n"
        "         }},\n"
    )


def main() -> None:
    table, source = map(Path, sys.argv[1:])
    try:
        rows = collectives.read(table)
    except collectives.TableError as error:
        sys.exit(f"generate.py: {error}")
    collectives.write(source, HEAD + "".join(entry(row) for row in rows if row.shape) + TAIL)


if __name__ == "__main__":
    main()
