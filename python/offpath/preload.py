"""Preloads a library, whatever characters its path contains."""

from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError


def variables(library: Path, inherited: dict[str, str]) -> dict[str, str]:
    """The variables that load `library` into a program, before the libraries that `inherited` preloads.

    The loader splits LD_PRELOAD at spaces and colons. If a library's path has spaces, LD_PRELOAD gets its
    name without the directory, and LD_LIBRARY_PATH gets the directory: the loader splits that only at colons
    and semicolons. Raises OffpathError if neither variable can express the path.
    """
    directory = str(library.parent)
    if not any(character.isspace() or character in ":;" for character in str(library)):
        return {"LD_PRELOAD": joined(" ", str(library), inherited.get("LD_PRELOAD"))}
    if any(character in ":;\n" for character in directory):
        raise OffpathError(
            Code.MPI_LIBRARY,
            f"{str(library)!r} cannot be preloaded: the loader takes paths apart at colons and semicolons",
            "build offpath in a directory without them",
        )
    return {
        "LD_PRELOAD": joined(" ", library.name, inherited.get("LD_PRELOAD")),
        "LD_LIBRARY_PATH": joined(":", directory, inherited.get("LD_LIBRARY_PATH")),
    }


def joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))
