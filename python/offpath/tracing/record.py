"""Traces a run: what its processes need for it, and what is made of their files afterwards."""

import os
from pathlib import Path

from offpath import console, preload, tracing
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

LIBRARIES = {"openmpi": "liboffpath-trace.so", "mpich": "liboffpath-trace-mpich.so"}
VARIABLE = "OFFPATH_TRACE"
SUMMARY = "summary.json"  # the file of OFFPATH_SUMMARY


def prepare(folder: Path) -> Path:
    """Makes the directory, without files of an earlier trace, and returns its full path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*tracing.find(folder), folder / SUMMARY]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise OffpathError(
            Code.OUTPUT_FILE, f"no trace can be written to {folder}: {error.strerror}"
        ) from error
    return folder.resolve()


def variables(artifacts: Artifacts, mpi: str, folder: Path, preloads: dict[str, str]) -> dict[str, str]:
    """The variables of ranks that are traced. `preloads` has those that load other libraries. MPIs without a
    tracer, and programs without MPI, show what they hand to their devices only."""
    found = {VARIABLE: str(folder)}
    if "OFFPATH_SUMMARY" not in os.environ:
        found["OFFPATH_SUMMARY"] = str(folder / SUMMARY)
    if mpi not in LIBRARIES:
        return found
    library = artifacts.root / "lib" / LIBRARIES[mpi]
    if not library.exists():
        raise OffpathError(
            Code.NOT_INSTALLED, f"the tracer is not built: {library} is missing", "run `make build`"
        )
    return found | preload.variables(library, preloads)


def finish(folder: Path) -> None:
    """Converts what the processes wrote, and tells where it is."""
    if not tracing.find(folder):
        console.warn(Code.NOTHING_TO_DO, f"nothing was traced: no process wrote to {folder}")
        return
    from offpath.tracing import otf2, perfetto, slices  # with numpy, which is slow to load

    trace = slices.read(folder)
    perfetto.write(trace, folder / perfetto.FILE)
    archive = otf2.write(trace, folder)
    who = f"{_count(len(trace.ranks), 'rank')} and {_count(len(trace.devices), 'device')}"
    console.note(
        f"{trace.events} events of {who} are in {folder}; ui.perfetto.dev opens {perfetto.FILE}"
        + (f", OTF2's tools open {archive.relative_to(folder)}" if archive else "")
    )
    if trace.dropped:
        console.warn(
            Code.DROPPED,
            f"{trace.dropped} events were dropped: files of some processes were full (OFFPATH_TRACE_BYTES)",
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
