"""Files for results. A place is checked before the long work, and a file appears whole or not at all.

A file is made beside its place and renamed. If that fails in spite of the check, such as on a disk that has
become full, the results go to the directory for temporary files, and the error names that file.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError

_TRIED_BYTES = 1 << 16  # a check writes as much: a disk with less room has none for results

_promised: set[Path] = set()  # checked, and not yet written


def promised() -> bool:
    """Whether this command still has to write files that its user named."""
    return bool(_promised)


def check(path: Path) -> None:
    """Refuses a file that cannot be written. An existing file keeps its content."""
    if os.path.isdir(path):
        raise OffpathError(Code.OUTPUT_FILE, f"{path} is a directory", "name a file")
    if not os.path.isdir(path.parent):
        what = "is not a directory" if os.path.exists(path.parent) else "is not there"
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"{path} cannot be written: the directory {path.parent} {what}",
            f"make it first (mkdir -p {path.parent}), or name another file",
        )
    try:
        target = _target(path)
        if not target.exists() or target.is_file():  # to open a pipe or a terminal might block
            _try(target)
    except OSError as error:
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"{path} cannot be written: {error.strerror}",
            "name a file that you may write, in a directory where you may make files, on a disk with room",
        ) from error
    _promised.add(path)


def refuse_below(folder: Path, why: str) -> None:
    """Refuses what `check` has accepted if it is below `folder`."""
    for path in _promised:
        if path.absolute().is_relative_to(folder):
            raise OffpathError(
                Code.OUTPUT_FILE, f"{path} is out of reach: {why}", "name a file in another directory"
            )


def make_folder(folder: Path, what: str) -> None:
    """Makes a directory for results, or refuses one in which no file can be made. `what`: the results, such
    as "profile"."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _try_beside(folder / "results")
    except OSError as error:
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"no {what} can be written to {folder}: {error.strerror}",
            "name a directory where you may make files, on a disk with room",
        ) from error


def write(path: Path, content: str | bytes, results: bool = True) -> None:
    """Writes a file. `results`: a copy is worth keeping elsewhere if that fails."""
    raw = content.encode() if isinstance(content, str) else content
    make(path, lambda to: to.write_bytes(raw), results)


def make(path: Path, fill: Callable[[Path], object], results: bool = True) -> None:
    """Makes a file. `fill` writes it under another name, which ends as that of `path` does, and is called
    again if it failed with OSError and the results are to be kept elsewhere."""
    _promised.discard(path)
    try:
        target = _target(path)
        if target.exists() and not target.is_file():
            _pour(target, fill)
        elif os.access(target.parent, os.W_OK):
            _replace(target, fill)
        else:
            _pour(target, fill)
    except OSError as error:
        kept = _keep(path, fill) if results else None
        raise OffpathError(
            Code.OUTPUT_FILE,
            f"{path} cannot be written: {error.strerror or error}"
            + (f"; the results are in {kept}" if kept else ""),
        ) from error


def _target(path: Path) -> Path:
    """Links stay, and what they point to is replaced. /dev/stdout is what it is, not the file behind it."""
    return path if path.is_relative_to("/dev") or path.is_relative_to("/proc") else path.resolve()


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.stem[:200]}.{os.getpid()}{target.suffix}")


def _replace(target: Path, fill: Callable[[Path], object]) -> None:
    beside = _beside(target)
    try:
        fill(beside)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _pour(target: Path, fill: Callable[[Path], object]) -> None:
    """For pipes, terminals and devices, and for a file in a directory where no other can be made."""
    with tempfile.TemporaryDirectory(prefix="offpath-results-") as folder:
        made = Path(folder) / target.name
        fill(made)
        with open(target, "wb") as file:
            file.write(made.read_bytes())


def _keep(path: Path, fill: Callable[[Path], object]) -> Path | None:
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="offpath-results-"))
        fill(folder / path.name)
        return folder / path.name
    except OSError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return None


def _try(target: Path) -> None:
    if not target.exists() or os.access(target.parent, os.W_OK):
        _try_beside(target)
    if target.exists():
        with target.open("ab"):
            pass


def _try_beside(target: Path) -> None:
    beside = _beside(target)
    try:
        beside.write_bytes(bytes(_TRIED_BYTES))
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
