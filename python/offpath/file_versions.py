"""The versions of files that runs leave for later runs. A reader accepts one version of each kind."""

from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError


def check(path: Path, kind: str, found: object, wanted: int, remedy: str) -> None:
    """Raises OffpathError, with both versions, if a file of this kind has another version."""
    if found != wanted or isinstance(found, bool):
        raise OffpathError(
            Code.INPUT_FILE,
            f"{path} is {kind} of version {found}; this command reads version {wanted}",
            f"{remedy}, or read it with the offpath that wrote it",
        )
