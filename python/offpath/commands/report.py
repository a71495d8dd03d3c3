"""`offpath report`."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import console, outputs
from offpath.codes import Code
from offpath.commands import options
from offpath.errors import OffpathError


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            help="A directory of --trace, or the JSON of a benchmark or of lab compare.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            metavar="DIR",
            help="A trace of the same program to compare with, such as one without offload.",
            show_default=False,
        ),
    ] = None,
    plot: options.Plot = None,
) -> None:
    """Writes one HTML page about a traced run or a benchmark: what ranks, devices and wires did, and what to
    change.

    --plot draws the part of a traced run in which computation and transfers overlap most.

    Example: offpath report /tmp/t --before /tmp/t-host -o page.html
    """
    outputs.check(output)
    options.check_outputs(None, plot)
    if source.is_dir():
        from offpath.report import run_page  # with numpy, which is slow to load

        run, earlier = run_page.read(source), run_page.read(before) if before is not None else None
        page = run_page.page(run, earlier)
        if plot is not None:
            from offpath.report import picture  # matplotlib is slow to load

            compared = earlier.trace if earlier is not None else None
            outputs.make(plot, lambda to: picture.draw(run.trace, compared, to))
            console.note(f"drew {plot}")
    elif before is not None or plot is not None:
        raise OffpathError(
            Code.OPTION, "--before and --plot go with a directory of --trace", "name one instead of a file"
        )
    else:
        from offpath.report import benchmark_page

        page = benchmark_page.page(source)
    outputs.write(output, page)
    console.note(f"wrote {output}")
