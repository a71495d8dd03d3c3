"""Writes the operations and their traits from the rows of collectives.txt. operation_traits.h includes them.

usage: generate_operations.py COLLECTIVES.TXT OPS.H
"""

import sys
from pathlib import Path

from offpath import collectives

COUNTED = {"pair": "pair", "each": "each_pair", "blocks": "all_blocks", "vector": "vector", "-": "nothing"}


def _traits(row: collectives.Collective) -> str:
    synchronizes = "true" if "sync" in row.traits else "false"
    return f'{{"{row.op}", {row.switch_over}, Counted::{COUNTED[row.bytes]}, {synchronizes}}}'


def main() -> None:
    table, header = map(Path, sys.argv[1:])
    try:
        rows = collectives.read(table)
    except collectives.TableError as error:
        sys.exit(f"generate_operations.py: {error}")
    names = "".join(f"    {row.op},\n" for row in rows)
    traits = "".join(f"    {_traits(row)},\n" for row in rows)
    collectives.write(
        header,
        "// Generated from frontends/mpi/collectives/collectives.txt by generate_operations.py.\n"
        "// clang-format off\n"
        f"enum class Op : std::uint8_t {{\n{names}}};\n\n"
        f"inline constexpr std::array<OpTraits, {len(rows)}> op_rows = {{{{\n{traits}}}}};\n",
    )


if __name__ == "__main__":
    main()
