"""Finds the program that a command line names."""

import shutil
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError


def resolve(program: list[str]) -> list[str]:
    """The program with its full path. Checks that it exists, because a node reports a missing program without
    a useful message."""
    found = shutil.which(program[0])
    if found is None:
        name = program[0]
        raise OffpathError(
            Code.NOT_INSTALLED,
            f"program {name!r} is not {'executable' if Path(name).exists() else 'there'}",
            "give the path of an executable file, such as ./my_program, or a name that PATH knows",
        )
    return [str(Path(found).absolute()), *program[1:]]
