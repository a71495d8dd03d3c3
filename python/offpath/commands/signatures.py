"""`offpath signatures`: what runs of programs have learned, for their next runs."""

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from offpath import console, units
from offpath import signatures as files
from offpath.codes import Code
from offpath.errors import OffpathError

app = typer.Typer(help="Show, remove and share what runs of programs have learned.", no_args_is_help=True)

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="Their directory (default: OFFPATH_SIGNATURES, or the one of `offpath run`).",
        show_default=False,
    ),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The first digits of a signature's number.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(directory: Directory = None, json: Json = False) -> None:
    """Lists the programs that have signatures."""
    where = directory or files.directory()
    found, wrong = files.read_all(where)
    if json:
        print(jsonlib.dumps([{"id": one.id} | one.content for one in found], indent=2))
    elif not found:
        console.note(f"no signatures are in {where}")
    else:
        shown = Table("ID", "program", "MPI", "ranks", "nodes", "learned", "runs", "written")
        for one in found:
            content = one.content
            numbers = [content["ranks"], content["nodes"], len(content["learned"]), content["runs"]]
            shown.add_row(
                one.id[:8],
                console.escape(content["program"]["name"]),
                console.escape(content["mpi"]),
                *map(str, numbers),
                console.escape(content["written"]),
            )
        console.out.print(shown)
    for line in wrong:
        console.warn(Code.INPUT_FILE, line)


@app.command("show")
def show(beginning: Id, directory: Directory = None, json: Json = False) -> None:
    """Shows what the runs of one program have learned."""
    signature = files.find(directory or files.directory(), beginning)
    if json:
        print(jsonlib.dumps(signature.content, indent=2))
        return
    content = signature.content
    for name in ("mpi", "platform"):
        console.out.print(f"[bold]{name}[/bold]: {console.escape(content[name])}")
    shown = Table(
        "call", "ranks", "nodes", "bytes", "calls", "the program", "engine", "waits on host", "on device"
    )
    for row in files.rows(signature):
        shown.add_row(
            f"MPI_I{row['op'][1:]}",
            str(row["ranks"]),
            str(row["nodes"]),
            units.format_size(row["bytes"]),
            str(row["calls"]),
            row["phase"],
            row.get(row["phase"], "?"),
            _waiting(row, "host"),
            _waiting(row, "device"),
        )
    console.out.print(shown)


def _waiting(row: dict, engine: str) -> str:
    seen = row.get(engine)
    return f"{seen['exposed_s'] * 1e3:.3g} of {seen['elapsed_s'] * 1e3:.3g} ms" if seen else "not measured"


@app.command("remove")
def remove(
    beginnings: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The first digits.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of them.")] = False,
    directory: Directory = None,
) -> None:
    """Removes signatures, so that the next run learns anew."""
    where = directory or files.directory()
    if everything == bool(beginnings):
        raise OffpathError(Code.OPTION, "name signatures, or give --all", "one of them is needed")
    paths = [
        path for path in where.glob("*.json") if everything or path.stem.startswith(tuple(beginnings or ()))
    ]
    if not paths and not everything:
        raise OffpathError(
            Code.OPTION, "there are no such signatures", "`offpath signatures list` shows them"
        )
    for path in paths:
        path.unlink(missing_ok=True)
    console.note(f"removed {len(paths)}")


@app.command("export")
def export(
    beginning: Id,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file.")],
    directory: Directory = None,
) -> None:
    """Copies a signature to a file for somebody else."""
    files.write(files.find(directory or files.directory(), beginning).content, output)
    console.note(f"wrote {output}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `offpath signatures export`.")],
    directory: Directory = None,
) -> None:
    """Takes a signature from a file.

    It is used where program, MPI, platform and the numbers of ranks and nodes are the same.
    """
    signature = files.read(file)
    path = (directory or files.directory()) / f"{signature.id}.json"
    files.write(signature.content, path)
    console.note(f"{signature.content['program']['name']} starts from {path}")
