"""Finds the MPI library of a job. It determines the front end to load and the launcher to start the job with.

For a program, the shared libraries that it needs, directly or indirectly, tell its MPI. For a Python program,
the interpreter's mpi4py tells it; for a script, the programs that it names. If none of them uses an MPI, the
launcher's own MPI is taken. Several MPIs share one library name; such a library is asked for its version.
"""

import functools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from offpath import console
from offpath.codes import Code
from offpath.errors import OffpathError

KINDS = {"openmpi": "Open MPI", "mpich": "MPICH", "abi": "the MPI ABI"}
NONE = "none"  # loads no front end, for programs that use offpath's C API
_SAY = "say which it is with --mpi openmpi, mpich or abi; --mpi none if it is none"
_LAUNCHERS = re.compile(r"(mpirun|mpiexec|orterun|prterun|srun)([.-][\w.]+)?$")
_OPEN_MPI_PROGRAMS = ("orterun", "prterun")  # what mpirun and mpiexec are links to
_OTHER_LAUNCHERS = {"openmpi": ("mpirun.openmpi", "orterun"), "mpich": ("mpiexec.mpich", "mpiexec.hydra")}
_FIND_MPI4PY = (
    "import importlib.util as u; s = u.find_spec('mpi4py'); print(*(s.submodule_search_locations if s else"
    " []), sep='\\n')"
)
_SCRIPT_BYTES = 1 << 20
_SHARED_NAME = "an MPI with MPICH's common ABI"
_ASK_VERSION = """
import ctypes, sys
text, length = ctypes.create_string_buffer(1 << 16), ctypes.c_int()
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))
"""


@dataclass(frozen=True)
class Use:
    """A file that uses an MPI, and the library that shows it."""

    kind: str
    library: str
    file: Path

    def __str__(self) -> str:
        return "{file} (with {library})".format(**vars(self))


def of_job(command: list[str], chosen: str | None, needed: bool = True) -> str:
    """The MPI of the job that `command` starts, or `chosen` if the user has named one. Unless `needed`, the
    job may use no MPI."""
    if chosen is not None:
        if chosen not in (*KINDS, NONE):
            raise OffpathError(
                Code.OPTION, f"--mpi {chosen!r} is not known", f"use {', '.join(KINDS)} or {NONE}"
            )
        _check_chosen(command, chosen)
        return chosen
    launcher = launcher_of(command)
    found = next(uses(command[1:] if launcher else command), None)
    if found is not None:
        if found.kind not in KINDS:
            raise OffpathError(
                Code.MPI_LIBRARY, f"{found} uses {found.kind}, for which offpath has no front end", _SAY
            )
        return found.kind
    if launcher is None and not needed:
        return NONE
    if launcher is None:
        console.warn(
            Code.MPI_LIBRARY,
            f"there is nothing to do: no MPI library is seen in {shlex.join(command)}, and so nothing is"
            f" loaded before it; {_SAY}",
        )
        return NONE
    kind = launcher_kind(command[0])
    if kind is None:
        raise OffpathError(
            Code.MPI_LIBRARY,
            f"which MPI {shlex.join(command)} uses cannot be told: none of its programs needs an MPI library",
            _SAY,
        )
    return kind


def _check_chosen(command: list[str], chosen: str) -> None:
    """Raises OffpathError if a program of the command is linked to another MPI than the chosen one, whose
    handles differ. What scripts name is not looked at: the user knows better."""
    for word in command[1:] if launcher_of(command) else command:
        path = shutil.which(word) if chosen != NONE and not word.startswith("-") and "=" not in word else None
        if path is None or not libraries_of(Path(path)):
            continue
        found = next(_of_elf(Path(path)), None)
        if found is not None and found.kind in KINDS and found.kind != chosen:
            raise OffpathError(
                Code.MPI_LIBRARY,
                f"--mpi {chosen}: {found} uses {KINDS[found.kind]}",
                f"leave --mpi out, or write --mpi {found.kind}",
            )


def of_program(program: list[str]) -> str:
    """The MPI of a program that the lab starts. Open MPI if nothing tells otherwise."""
    found = next(uses(program), None)
    if found is not None and found.kind not in ("openmpi", "mpich"):
        raise OffpathError(
            Code.MPI_LIBRARY,
            f"{found.file} uses {KINDS.get(found.kind, found.kind)} ({found.library}), which the lab cannot"
            " start",
        )
    return found.kind if found else "openmpi"


def check_front_end(command: list[str], front_end: Path) -> None:
    """Raises OffpathError if the front end is made for another library of MPICH than the one that the
    programs of `command` need. MPICH's library has different names."""
    found = next(uses(command[1:] if launcher_of(command) else command), None)
    if found is None or found.kind != "mpich":
        return
    made_for = next((name for name, _ in _needs(front_end) if kind_of(name)), found.library)
    if made_for != found.library:
        raise OffpathError(
            Code.MPI_LIBRARY,
            f"{found.file} needs MPICH as {found.library}, and {front_end} is made for MPICH as {made_for}",
            "build offpath for that MPICH (OFFPATH_MPICH_INCLUDE_DIR, OFFPATH_MPICH_LIBRARY), or run the"
            " program without it: --mpi none",
        )


def start_with(command: list[str], kind: str) -> list[str]:
    """Returns `command` with a launcher of the MPI `kind`, if its own launcher belongs to the other MPI and
    was not named by a full path."""
    if kind == NONE or launcher_of(command) in (None, "srun"):
        return command
    own = launcher_kind(command[0])
    # The ABI's MPI is chosen at run time, and the user's launcher belongs to it.
    if own in (None, kind) or kind == "abi":
        return command
    # Uses the launcher's name without a directory: Open MPI would take the directory for its prefix.
    other = next(filter(shutil.which, _OTHER_LAUNCHERS[kind]), None)
    if other is None or Path(command[0]).name not in ("mpirun", "mpiexec"):
        raise OffpathError(
            Code.MPI_LIBRARY,
            f"the program uses {KINDS[kind]}, and {command[0]} is {KINDS[own]}'s",
            f"use {KINDS[kind]}'s launcher, or --mpi {own}",
        )
    console.note(
        f"the program uses {KINDS[kind]}: starting it with {other}, since {command[0]} is {KINDS[own]}'s"
    )
    return [other, *command[1:]]


def launcher_of(command: list[str]) -> str | None:
    """Returns mpirun, mpiexec, srun or the like, without any suffix of its name. Returns None if the command
    has no launcher."""
    found = _LAUNCHERS.match(Path(command[0]).name)
    return found and found[1]


def launcher_kind(launcher: str) -> str | None:
    """The MPI that a launcher belongs to. None for srun, and for a launcher whose version does not tell."""
    if Path(launcher).name.startswith("srun"):
        return None
    if Path(shutil.which(launcher) or launcher).resolve().name in _OPEN_MPI_PROGRAMS:
        return "openmpi"
    said = _output([launcher, "--version"])
    if re.search(r"Open ?MPI|OpenRTE|PRRTE", said, re.IGNORECASE):
        return "openmpi"
    return "mpich" if re.search(r"HYDRA|MPICH", said) else None


def uses(words: list[str]) -> Iterator[Use]:
    """What the programs among the words of a command line use, in the order of the words."""
    for word in words:
        if word.startswith("-") or "=" in word:
            continue
        if found := shutil.which(word):
            yield from _of_file(Path(found), depth=0)


def _of_file(path: Path, depth: int) -> Iterator[Use]:
    try:
        with path.open("rb") as file:
            start = file.read(4)
            text = start + file.read(_SCRIPT_BYTES) if start[:2] == b"#!" else b""
    except OSError:
        return
    if re.match(r"python[\d.]*$", path.name):
        yield from _of_python(path)
    elif start == b"\x7fELF":
        yield from _of_elf(path)
    elif text:
        yield from _of_script(path, text.decode(errors="replace"), depth)


def _of_elf(path: Path) -> Iterator[Use]:
    for library, place in _needs(path):
        if kind := kind_of(library):
            yield Use(_who_answers(place) if kind == _SHARED_NAME else kind, Path(library).name, path)
            return


def libraries_of(path: Path) -> dict[str, str]:
    """The shared libraries that a program needs, and the path of each. Empty if the file is not
    an ELF file."""
    try:
        with path.open("rb") as file:
            is_elf = file.read(4) == b"\x7fELF"
    except OSError:
        return {}
    return dict(_needs(path)) if is_elf else {}


@functools.cache
def _needs(path: Path) -> list[tuple[str, str]]:
    """The names of the shared libraries that a file needs, directly or indirectly, and the path of each. The
    path is empty if the library is not found."""
    return re.findall(r"^\s*(\S+) (?:=> (/\S+)|=>|\()", _output(["ldd", str(path)]), re.MULTILINE)


def _who_answers(library: str) -> str:
    """The MPI that a library belongs to, among those that share its name. The library's version tells it."""
    said = _output([sys.executable, "-c", _ASK_VERSION, library]).strip() if library else ""
    if re.match(r"MPICH Version", said):
        return "mpich"
    return said.splitlines()[0] if said else _SHARED_NAME


def kind_of(library: str) -> str | None:
    """The MPI that a shared library belongs to, by its name. None if it is not an MPI library."""
    name = Path(library).name
    if re.match(r"libmpich\.so", name):
        return "mpich"
    if re.match(r"libmpi_abi\.so", name):
        return "abi"
    version = re.match(r"libmpi\.so(?:\.(\d+))?", name)
    if version is None:
        return None
    # Open MPI's version has been 20 or more since release 2. MPICH's ABI initiative, which Intel MPI and
    # others follow, has 12.
    return _SHARED_NAME if version[1] == "12" else "openmpi"


def _of_python(interpreter: Path) -> Iterator[Use]:
    found: list[Use] = []
    for folder in _output([str(interpreter), "-c", _FIND_MPI4PY]).splitlines():
        for module in sorted(Path(folder).glob("MPI*.so")):
            found += _of_elf(module)
    if len({use.kind for use in found}) == 1:
        yield found[0]


def _of_script(path: Path, text: str, depth: int) -> Iterator[Use]:
    first, _, rest = text.partition("\n")
    interpreter = first[2:].split()
    if interpreter and Path(interpreter[0]).name == "env":
        interpreter = [word for word in interpreter[1:] if not word.startswith("-") and "=" not in word]
    program = shutil.which(interpreter[0]) if interpreter else None
    if program is None or depth > 2:
        return
    if Path(program).name.startswith("python"):
        yield from _of_python(Path(program))
        return
    launchers = []
    for line in rest.splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        for word in words:
            found = None if word.startswith("-") else shutil.which(word)
            if found and _LAUNCHERS.match(Path(found).name):
                launchers.append(found)
            elif found and Path(found) != path:
                yield from _of_file(Path(found), depth + 1)
    for launcher in launchers:
        if kind := launcher_kind(launcher):
            yield Use(kind, launcher, path)


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
