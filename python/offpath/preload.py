"""How a library is preloaded, whatever its path is called."""

from pathlib import Path

from offpath.errors import OffpathError


def variables(library: Path, inherited: dict[str, str]) -> dict[str, str]:
    """What has to be set for `library` to be loaded before a program, in front of what `inherited` preloads.

    The loader takes LD_PRELOAD apart at spaces and colons. A library whose path has spaces is named without
    its directory, which LD_LIBRARY_PATH says: that is taken apart at colons and semicolons only. Raises
    OffpathError for what neither can say.
    """
    directory = str(library.parent)
    if not any(character.isspace() or character in ":;" for character in str(library)):
        return {"LD_PRELOAD": joined(" ", str(library), inherited.get("LD_PRELOAD"))}
    if any(character in ":;\n" for character in directory):
        raise OffpathError(
            f"{str(library)!r} cannot be preloaded: the loader takes paths apart at colons and semicolons",
            "build offpath in a directory without them",
        )
    return {
        "LD_PRELOAD": joined(" ", library.name, inherited.get("LD_PRELOAD")),
        "LD_LIBRARY_PATH": joined(":", directory, inherited.get("LD_LIBRARY_PATH")),
    }


def joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))
