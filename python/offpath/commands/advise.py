"""`offpath advise`."""

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from offpath import (
    advise,
    advise_page,
    console,
    launch,
    outputs,
    profiles,
    reports,
    run_job,
    sim,
    units,
    variable_checks,
)
from offpath.artifacts import Artifacts, find_artifacts
from offpath.codes import Code
from offpath.commands import job_options, options
from offpath.errors import OffpathError

_SHOWN = 12


def advise_(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND [ARGS]...", help="mpirun and its arguments, after --.", show_default=False
        ),
    ] = None,
    platform: options.Platform = "lab",
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", "-N", min=1, max=65536, help="Nodes there. Default: as in the profile."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FOLDER",
            help="Keep the profile here; without COMMAND: read it from here.",
            show_default=False,
        ),
    ] = None,
    mpi: job_options.Mpi = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also run COMMAND with offload, and compare.")
    ] = False,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=100, help="Runs of each kind with --verify, in turn.")
    ] = 1,
    json: options.Json = None,
    html: job_options.Html = None,
) -> None:
    """Runs COMMAND without offload under a profiler, and says what offload would bring to it.

    The profile is replayed in the simulator, without devices and with them. The summary has a line for each
    place in the program that communicates.

    Example: offpath advise --platform thor-bf2 --nodes 4 -- mpirun -n 4 ./my_program
    """
    sim.find_platform(platform)
    if not command and profile is None:
        raise OffpathError(
            Code.NOTHING_TO_DO, "there is nothing to do", "name a COMMAND after --, or a --profile to read"
        )
    if verify and not command:
        raise OffpathError(
            Code.OPTION, "--verify runs the program, and none is named", "name a COMMAND after --"
        )
    variable_checks.check()
    options.check_outputs(json, None)
    if html is not None:
        outputs.check(html)
    artifacts = find_artifacts()
    with tempfile.TemporaryDirectory(prefix="offpath-profile-") as temporary:
        folder = profile or Path(temporary)
        if command:
            _record(run_job.check_launcher(command), folder, artifacts, mpi)
        read = profiles.read(folder)
        found = advise.advise(read, platform, nodes or read.nodes, artifacts)
        if verify and command:
            found.verified = _verify(command, artifacts, mpi, runs)
    show(found)
    reports.write(found.as_json(), json)
    if html is not None:
        advise_page.write(found, html)
        console.note(f"wrote {html}")


def _record(command: list[str], folder: Path, artifacts: Artifacts, mpi: str | None) -> None:
    outputs.make_folder(folder, "profile")
    for old in folder.glob("rank-*.json"):
        old.unlink()
    code = profiles.record(command, folder, artifacts, mpi)
    if code != 0:
        raise OffpathError(
            Code.JOB_FAILED, f"the program failed with code {code}; there is nothing to advise", code=code
        )


def _verify(command: list[str], artifacts: Artifacts, mpi: str | None, runs: int) -> dict[str, float]:
    """Runs the program in turn without offload and with it, without the profiler's library, and times its
    whole life."""
    cpus = launch.default_device_cpus(os.sched_getaffinity(0))
    times: dict[str, list[float]] = {"off": [], "on": []}
    for state in [state for _ in range(runs) for state in times]:
        before = os.environ.get("OFFPATH")
        os.environ["OFFPATH"] = state
        try:
            begin = time.monotonic()
            code = launch.run(command, artifacts, launch.LaunchOptions(cpus, verbose=0, mpi=mpi))
            times[state].append(time.monotonic() - begin)
        finally:
            os.environ.pop("OFFPATH") if before is None else os.environ.update(OFFPATH=before)
        if code != 0:
            raise OffpathError(
                Code.JOB_FAILED, f"the program failed with code {code} with offload {state}", code=code
            )
    return advise.measured_gain(times["off"], times["on"], "wall_s")


def show(found: advise.Advice) -> None:
    console.out.print(f"{advise.where_from(found)} of {found.platform}")
    table = Table()
    for column in ("call", "place", "count", "bytes", "in call", "window", "gain", "advice"):
        table.add_column(column, justify="left" if column in ("call", "place", "advice") else "right")
    shown = [one for one in found.sites if one.site.inside_s > 0][:_SHOWN]
    for one in shown:
        table.add_row(
            one.site.call,
            one.site.place,
            str(one.site.count),
            units.format_size(one.site.bytes) if one.site.bytes else "-",
            units.format_seconds(one.site.inside_s),
            units.format_seconds(one.site.window_s) if one.site.windows else "-",
            _signed(one.gain_s),
            one.text,
        )
    console.out.print(table)
    console.note("times of a site are sums over all ranks; its gain is that of the replays, inside the call")
    console.out.print(
        f"measured {units.format_seconds(found.measured_s)}; replayed without offload"
        f" {units.format_seconds(found.host_s)}, with offload {units.format_seconds(found.offpath_s)}"
    )
    console.out.print(advise.headline(found))
    if found.verified:
        console.out.print(advise.measured_line(found))
        console.note(f"gains within {found.band_percent:.0f} %, the noise of the runs, are no change")
    for note in found.notes:
        console.note(note)


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return ("-" if seconds < 0 else "") + units.format_seconds(abs(seconds))
