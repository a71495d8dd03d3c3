"""Profiles of MPI programs: runs a program under the profiler, and reads what its ranks have written.
docs/advise.md describes the files."""

import os
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from offpath import file_versions, launch, mpi_library, preload, reports
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

VERSION = 1
LIBRARIES = {"openmpi": "liboffpath-profile.so", "mpich": "liboffpath-profile-mpich.so"}
_BLOCKING_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Recv", "Sendrecv", "Sendrecv_replace")
_COMPLETIONS = ("Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome")


@dataclass
class Site:
    """One call of the program's source, added up over all ranks. Times in seconds of ranks."""

    call: str
    place: str
    object: str = ""
    offset: int = 0
    count: int = 0
    bytes: int = 0
    inside_s: float = 0  # in the call
    compute_s: float = 0  # before it
    waited_for_last_s: float = 0  # of inside_s, before the last rank had arrived
    window_s: float = 0  # computation between posts here and their completions
    windows: int = 0
    waited_s: float = 0  # in completions of what was posted here
    partners: set[int] = field(default_factory=set)
    communicators: set[int] = field(default_factory=set)

    @property
    def completes(self) -> bool:
        return self.call in _COMPLETIONS

    @property
    def posts(self) -> bool:
        return self.windows > 0 or self.call.startswith(("I", "Start"))

    @property
    def could_be_nonblocking(self) -> bool:
        return not self.posts and not self.completes and (bool(self.bytes) or self.call in _BLOCKING_SENDS)


@dataclass
class Profile:
    folder: Path
    ranks: list[dict]  # the files, in order

    @property
    def measured_s(self) -> float:
        return max(rank["end_s"] - rank["begin_s"] for rank in self.ranks)

    @property
    def polled_s(self) -> float:
        """Time inside tests that found nothing, per rank. Older profiles do not have it."""
        return sum(rank.get("polled_s", 0.0) for rank in self.ranks) / len(self.ranks)

    @property
    def nodes(self) -> int:
        return len({rank["node"] for rank in self.ranks})


def record(command: list[str], folder: Path, artifacts: Artifacts, chosen: str | None = None) -> int:
    """Runs `command` (a launcher and its arguments) without offload, with the profiler loaded into its ranks,
    and returns its exit code."""
    mpi = mpi_library.of_job(command, chosen)
    if mpi not in LIBRARIES:
        raise OffpathError(
            Code.NOT_INSTALLED,
            f"there is no profiler for the MPI {mpi!r}",
            "use one of " + ", ".join(LIBRARIES),
        )
    library = artifacts.root / "lib" / LIBRARIES[mpi]
    if not library.exists():
        raise OffpathError(
            Code.NOT_INSTALLED, f"the profiler is not built: {library} is missing", "run `make build`"
        )
    inherited = dict(os.environ)
    variables = preload.variables(library, inherited) | {"OFFPATH_PROFILE": str(folder.resolve())}
    line, environment = launch.prepare(mpi_library.start_with(command, mpi), variables, inherited, mpi)
    try:
        return launch.wait_for(subprocess.Popen(line, env=environment))
    except OSError as error:
        raise OffpathError(Code.NOT_INSTALLED, f"{command[0]!r} cannot be run: {error.strerror}") from error


def read(folder: Path) -> Profile:
    """Reads all ranks' files. offpath-sim checks their contents in full; this checks what is used here."""
    first = folder / "rank-0.json"
    if not first.exists():
        raise OffpathError(
            Code.INPUT_FILE,
            f"{folder} holds no profile: rank-0.json is missing",
            "the program calls no MPI_Finalize, or its MPI calls are Fortran's, which Open MPI hides",
        )
    ranks = [_read_file(first)]
    ranks += [
        _read_file(folder / f"rank-{rank}.json") for rank in range(1, _number(first, ranks[0], "ranks"))
    ]
    return Profile(folder, ranks)


def _read_file(path: Path) -> dict:
    found = reports.read(path)
    if not isinstance(found, dict) or found.get("format") != "offpath-profile":
        raise OffpathError(Code.INPUT_FILE, f'{path}: format: "offpath-profile" is wanted')
    file_versions.check(path, "a profile", found.get("version"), VERSION, "record another one")
    for name in ("begin_s", "end_s", "lost", "rank", "ranks"):
        _number(path, found, name)
    for name in ("sites", "calls", "sequence", "communicators", "arrivals", "offset_s", "node"):
        if name not in found:
            raise OffpathError(Code.INPUT_FILE, f"{path}: {name}: is missing")
    return found


def _number(path: Path, found: dict, name: str) -> int:
    if name not in found:
        raise OffpathError(Code.INPUT_FILE, f"{path}: {name}: is missing")
    value = found[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise OffpathError(
            Code.INPUT_FILE, f"{path}: {name}: {value!r} is not accepted: a number is wanted, not below 0"
        )
    return int(value)


def sites_of(profile: Profile) -> dict[tuple, Site]:
    """The call sites of the program. The key is call, object and offset, as `site_key` gives it."""
    sites: dict[tuple, Site] = {}
    for rank in profile.ranks:
        members = [comm["members"] for comm in rank["communicators"]]
        for index, call in enumerate(rank["calls"]):
            key = site_key(rank, index)
            if key not in sites:
                sites[key] = Site(call["call"], "", key[1], key[2])
            site = sites[key]
            if "comm" in call:
                site.communicators.add(call["comm"])
            for peer in (call.get("peer", -3), call.get("from", -3)):
                if peer >= 0 and "comm" in call:
                    site.partners.add(members[call["comm"]][peer])
            windows = call.get("windows", {})
            site.windows += windows.get("count", 0)
            site.window_s += windows.get("compute_s", 0)
            site.waited_s += windows.get("waited_s", 0)
            lost = call.get("lost", {})
            site.count += lost.get("count", 0)
            site.inside_s += lost.get("inside_s", 0)
            site.compute_s += lost.get("compute_s", 0)
        _add_sequence(sites, rank, rank["sequence"])
    _add_waiting(sites, profile)
    _name_places(sites)
    return sites


def site_key(rank: dict, index: int) -> tuple:
    call = rank["calls"][index]
    site = rank["sites"][call["site"]] or {}
    return (call["call"], site.get("object", ""), site.get("offset", 0))


def bytes_of(call: dict, ranks: int) -> int:
    """What a rank sends with one call, or receives."""
    if "list" in call and call["call"] not in _COMPLETIONS:
        values = call["list"]
        return sum(values[: ranks if len(values) == 2 * ranks else None])
    each = call.get("bytes", 0)
    return each * ranks if call["call"].lower() in ("alltoall", "ialltoall") else each


def _add_sequence(sites: dict[tuple, Site], rank: dict, nodes: list) -> None:
    for node in nodes:
        if isinstance(node, dict):
            _add_sequence(sites, rank, node["body"])
            continue
        index, count, compute, inside, *_ = node
        call = rank["calls"][index]
        site = sites[site_key(rank, index)]
        size = len(rank["communicators"][call["comm"]]["members"]) if "comm" in call else 1
        site.count += count
        site.bytes += count * bytes_of(call, size)
        site.inside_s += inside
        site.compute_s += compute


def _add_waiting(sites: dict[tuple, Site], profile: Profile) -> None:
    """Adds the time that ranks spent in blocking collectives before the last rank arrived."""
    meetings: dict[tuple, list] = defaultdict(list)
    strides: dict[tuple, int] = {}
    for rank in profile.ranks:
        offset = sum(rank["offset_s"]) / 2
        for comm, number, call, entered, inside in rank["arrivals"]["entries"]:
            its = rank["communicators"][comm]
            key = (tuple(its["members"]), its["occurrence"], number)
            meetings[key].append((entered + offset, inside, site_key(rank, call), rank["arrivals"]["stride"]))
            strides[key] = max(strides.get(key, 1), rank["arrivals"]["stride"])
    for (members, _, number), met in meetings.items():
        if len(met) < len(members) or met[0][2][0].startswith("I"):
            continue
        stride = strides[(members, _, number)]
        last = max(entered for entered, *_ in met)
        for entered, inside, site, _own in met:
            sites[site].waited_for_last_s += stride * min(inside, max(0.0, last - entered))


def _name_places(sites: dict[tuple, Site]) -> None:
    """Finds the function and line of each site, where the object has debug information."""
    tool = shutil.which("addr2line")
    by_object: dict[str, list[Site]] = defaultdict(list)
    for site in sites.values():
        by_object[site.object].append(site)
    for path, its in by_object.items():
        lines: list[str] = []
        if tool and Path(path).is_file():
            asked = [tool, "-f", "-C", "-s", "-e", path, *(hex(site.offset) for site in its)]
            lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
        for number, site in enumerate(its):
            found = lines[2 * number : 2 * number + 2]
            function, line = found if len(found) == 2 else ("??", "??:0")
            function = function.partition("(")[0]
            line = line.partition(" (")[0]
            name = Path(path).name or "unknown"
            if line.startswith("??"):
                site.place = f"{name}+{site.offset:#x}" if function == "??" else f"{function} ({name})"
            else:
                site.place = f"{line} {function}" if function != "??" else line
