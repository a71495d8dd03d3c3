"""`offpath study reproduce`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from offpath import console, outputs, reports, sim
from offpath.artifacts import find_artifacts
from offpath.commands import options
from offpath.reproduction import by_measurement, page, study


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce_)


def reproduce_(
    json: options.Json = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE",
            help="Write the page for the documentation, in Markdown.",
            rich_help_panel="Results",
            show_default=False,
        ),
    ] = None,
) -> None:
    """The papers' figures beside ours: from formulas, from simulations, and from stored measurements.

    Example: offpath study reproduce --json rows.json
    """
    options.check_outputs(json, None)
    if out is not None:
        outputs.check(out)
    artifacts = find_artifacts()
    artifacts.program(sim.PROGRAM)
    rows = study.rows(artifacts)
    table = Table()
    for column in ("place", "figure", "paper", "ours", "error", "from"):
        table.add_column(column, justify="right" if column in ("ours", "error") else "left")
    for cells in page.table(rows):
        table.add_row(*cells)
    console.out.print(table)
    commands = by_measurement.commands()
    reports.write({"rows": [row.as_json() for row in rows], "stored": commands}, json)
    if out is not None:
        outputs.write(out, page.render(rows, commands))
        console.note(f"wrote {out}")
