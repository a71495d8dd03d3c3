"""Writes the control variables of MPI_T: those of variables.json that the front end for MPI reads.

usage: generate_variables.py VARIABLES.JSON VARIABLES.INC
"""

import json
import sys
from pathlib import Path

from offpath import collectives


def _row(variable: dict) -> str:
    meaning = f"{variable['meaning']}; accepted: {variable['values']}; default: {variable['default']}"
    # Settings of the C API are each process's own; the others are rank 0's.
    shared = "false" if "C API" in variable["read_by"] else "true"
    return f"{{{json.dumps(variable['name'])}, {json.dumps(meaning)}, {shared}}},\n"


def main() -> None:
    table, rows = map(Path, sys.argv[1:])
    variables = json.loads(table.read_text())
    collectives.write(
        rows,
        "".join(_row(v) for v in variables if "MPI" in v["read_by"] and not v.get("internal")),
    )


if __name__ == "__main__":
    main()
