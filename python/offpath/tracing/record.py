"""Traces a run: what its processes need for it, and what is made of their files afterwards."""

import os
import shutil
from pathlib import Path

from offpath import console, outputs, preload, tracing, units
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

LIBRARIES = {"openmpi": "liboffpath-trace.so", "mpich": "liboffpath-trace-mpich.so"}
VARIABLE = "OFFPATH_TRACE"
SUMMARY = "summary.json"  # the file of OFFPATH_SUMMARY


def prepare(folder: Path) -> Path:
    """Makes the directory, without files of an earlier trace, and returns its full path."""
    outputs.make_folder(folder, "trace")
    try:
        for old in [*tracing.find(folder), folder / SUMMARY, folder / tracing.PERFETTO]:
            old.unlink(missing_ok=True)
        shutil.rmtree(folder / tracing.OTF2, ignore_errors=True)
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
    """Converts what a run has written. The run has ended by now, so what is wrong becomes a warning and the
    exit code remains the program's."""
    if not tracing.find(folder):
        console.warn(Code.NOTHING_TO_DO, f"nothing was traced: no process wrote to {folder}")
        return
    try:
        convert(folder)
    except OffpathError as error:
        console.warn(error.kind, f"{error}; `offpath trace {folder}` converts it again")


def convert(folder: Path) -> None:
    """Converts what the processes wrote, and tells where it is."""
    from offpath.tracing import otf2, perfetto, slices  # with numpy, which is slow to load

    trace = slices.read(folder)
    try:
        outputs.make(folder / tracing.PERFETTO, lambda to: perfetto.write(trace, to), results=False)
        archive = otf2.write(trace, folder)
    except OSError as error:
        raise OffpathError(
            Code.OUTPUT_FILE, f"the trace in {folder} cannot be converted: {error.strerror}"
        ) from error
    who = f"{units.count(len(trace.ranks), 'rank')} and {units.count(len(trace.devices), 'device')}"
    console.note(
        f"{units.count(trace.events, 'event')} of {who} are in {folder};"
        f" ui.perfetto.dev opens {tracing.PERFETTO}"
        + (f", OTF2's tools open {archive.relative_to(folder)}" if archive else "")
    )
    if trace.dropped:
        console.warn(
            Code.DROPPED,
            f"{trace.dropped} events were dropped: files of some processes were full (OFFPATH_TRACE_BYTES)",
        )
