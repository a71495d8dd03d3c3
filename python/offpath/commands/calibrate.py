"""`offpath calibrate`."""

from json import dumps as dump
from pathlib import Path
from typing import Annotated

import typer

from offpath import calibrate, console, outputs, reports, sim
from offpath.artifacts import find_artifacts
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError
from offpath.skeletons import measure


def calibrate_(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The platform file to write.", show_default=False),
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option(
            "--kernels",
            metavar="FILE",
            help="Measure what skeletons compute, and write it here. Takes half a minute.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long each operation and size is measured.")
    ] = 0.3,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured",
            metavar="FILE",
            help="Fit to what an earlier --json kept, and measure nothing.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = None,
) -> None:
    """Measures this machine and writes a platform file for `offpath sim`. It takes about two minutes; nothing
    else should run meanwhile. With --kernels, it also measures what skeletons of programs compute.

    Example: offpath calibrate --out here.json
    """
    if not 0.01 <= seconds <= 10:
        raise OffpathError(Code.OPTION, f"--seconds {seconds} is out of range", "use 0.01 to 10")
    if out is None and kernels is None:
        raise OffpathError(
            Code.OPTION, "what to measure is not clear", "give --out FILE, --kernels FILE, or both"
        )
    for file in (out, kernels):
        if file is not None:
            outputs.check(file)
    options.check_outputs(json, None)
    artifacts = find_artifacts()
    if kernels is not None:
        outputs.write(kernels, dump(measure.kernels(artifacts), indent=2) + "\n")
        console.note(f"wrote {kernels}")
    if out is None:
        return
    artifacts.program(sim.PROGRAM)
    if measured is not None:
        micro, labs = calibrate.read(measured)
    else:
        options.need_tools(namespaces=True)
        for program in (calibrate.MICRO, "offpath-bench-mpi"):
            artifacts.program(program)
        micro = calibrate.micro(artifacts)
        labs = calibrate.measure(artifacts, seconds)
    reports.write(calibrate.kept(micro, labs), json)
    figures, distances = calibrate.platform(sim.read_figures(calibrate.BASE), micro, labs, artifacts)
    calibrate.show(figures, distances)
    outputs.write(out, dump(figures, indent=2) + "\n")
    console.note(f"wrote {out}")
