"""`offpath trace`: converts what a run has traced."""

from pathlib import Path
from typing import Annotated

import typer

from offpath.tracing import record


def trace_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of --trace.", show_default=False)
    ],
) -> None:
    """Converts the files in DIR again, such as those of a run that was killed together with its command.

    Example: offpath trace /tmp/t
    """
    record.convert(folder)
