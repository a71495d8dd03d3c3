"""`offpath report`."""

from pathlib import Path
from typing import Annotated

import typer

from offpath import console
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
) -> None:
    """Writes one HTML page about a traced run or a benchmark: what ranks, devices and wires did, and what to
    change.

    Example: offpath report /tmp/t --before /tmp/t-host -o page.html
    """
    options.check_output(output)
    if source.is_dir():
        from offpath.report import run_page  # with numpy, which is slow to load

        page = run_page.page(run_page.read(source), run_page.read(before) if before is not None else None)
    elif before is not None:
        raise OffpathError("--before goes with a directory of --trace", "name one instead of a file")
    else:
        from offpath.report import benchmark_page

        page = benchmark_page.page(source)
    output.write_text(page)
    console.note(f"wrote {output}")
