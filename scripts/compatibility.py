#!/usr/bin/env python3
"""The table of what offpath was tested with: docs/compatibility.json, and the page made from it.

usage: compatibility.py record BUILD   adds what the latest run of BUILD's tests found, and writes the page
       compatibility.py page           prints the page

A row is about one MPI, or about the tests without one, with the UCX, the compiler and the processor of the
build. A later run with the same of these replaces the row. Only what a run found is added."""

import datetime
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs/compatibility.json"
PAGE = ROOT / "docs/compatibility.md"
KEY = ("mpi", "ucx", "compiler", "processor")
_HEAD = """# What offpath was tested with

After reading this page you know with which MPI libraries, UCX releases, compilers and processors
the tests of offpath ran, and what they found. What is not in the table may work; nobody has tried
it.

This page is generated from `docs/compatibility.json`. After a run of the tests,
`scripts/compatibility.py record build` adds what that run found; so does `make compatibility`.

| MPI | UCX | compiler | processor | tests passed | failed | skipped | when | revision |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
_TAIL = """
- A test counts as the MPI's if its name begins with that of the MPI: `mpi.` for Open MPI, `mpich.`
  and `abi.`. All others count as `none`: unit tests, and tests of the daemon, OpenSHMEM and OpenMP.
- UCX is the release that offpath was built with. MPI libraries may bring their own.
- A run may be of a part of the tests. Its row then has smaller numbers.

Open MPI 5, MPICH 5 and the MPI ABI have [a test of their own](mpi.md#open-mpi-5-and-mpich-5), and
devices of another architecture [theirs](aarch64.md).
"""


def results(tests: list[dict]) -> dict[str, dict[str, int]]:
    """Counts of a run's tests (build/Testing/results.json), by what they are about."""
    found: dict[str, dict[str, int]] = {}
    for test in tests:
        about = test["name"].partition(".")[0]
        about = about if about in ("mpi", "mpich", "abi") else "none"
        counts = found.setdefault(about, {"passed": 0, "failed": 0, "skipped": 0})
        counts[test["outcome"]] += 1
    return found


def _defined(header: Path, name: str) -> str:
    text = header.read_text(errors="replace") if header.exists() else ""
    found = re.search(rf'^# *define {name} +"?([\w.]+)"?', text, re.MULTILINE)
    return found[1] if found else "?"


def versions(build: Path) -> dict[str, str]:
    """The releases that a build tree was made with."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE))
    compiler = next(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")).read_text()
    of_compiler = dict(
        re.findall(r'^set\(CMAKE_CXX_COMPILER_(ID|VERSION) "([^"]*)"\)', compiler, re.MULTILINE)
    )
    kind = of_compiler["ID"]
    openmpi = Path(cache.get("OFFPATH_MPI_H_openmpi", "none"))
    mpich = Path(cache.get("OFFPATH_MPI_H_mpich", "none"))
    ucx = Path(cache.get("UCX_INCLUDE_DIR", "none")) / "ucp/api/ucp_version.h"
    parts = [_defined(openmpi, f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE")]
    return {
        "mpi": f"Open MPI {'.'.join(parts)}",
        "mpich": f"MPICH {_defined(mpich, 'MPICH_VERSION')}",
        "abi": "the MPI ABI",
        "none": "none",
        "ucx": f"{_defined(ucx, 'UCP_API_MAJOR')}.{_defined(ucx, 'UCP_API_MINOR')}",
        "compiler": f"{'GCC' if kind == 'GNU' else kind} {of_compiler['VERSION']}",
        "processor": platform.machine(),
    }


def merged(rows: list[dict], new: list[dict]) -> list[dict]:
    """`rows` with those of `new` in the place of the ones for the same releases, sorted."""
    by_key = {tuple(row[name] for name in KEY): row for row in [*rows, *new]}
    return [by_key[key] for key in sorted(by_key)]


def record(build: Path) -> list[dict]:
    used = versions(build)
    of_git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(of_git, capture_output=True, text=True, check=True).stdout.strip()
    common = {name: used[name] for name in ("ucx", "compiler", "processor")}
    common |= {"when": datetime.date.today().isoformat(), "revision": revision}
    tests = json.loads((build / "Testing/results.json").read_text())["tests"]
    return [{"mpi": used[about], **common, **counts} for about, counts in results(tests).items()]


def page(rows: list[dict]) -> str:
    columns = (*KEY, "passed", "failed", "skipped", "when", "revision")
    lines = [f"| {' | '.join(str(row[name]) for name in columns)} |\n" for row in rows]
    return _HEAD + "".join(lines) + _TAIL


def main() -> int:
    rows = json.loads(TABLE.read_text()) if TABLE.exists() else []
    match sys.argv[1:]:
        case ["record", build]:
            rows = merged(rows, record(Path(build)))
            TABLE.write_text(json.dumps(rows, indent=1) + "\n")
            PAGE.write_text(page(rows))
        case ["page"]:
            print(page(rows), end="")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
