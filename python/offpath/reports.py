"""What a benchmark or a study found: writes a JSON file and a picture of it, and reads JSON files."""

import json as jsonlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offpath import console, outputs
from offpath.codes import Code
from offpath.errors import OffpathError


def write(
    found: dict,
    json: Path | None,
    plot: Path | None = None,
    draw: Callable[[dict, Path], None] | None = None,
) -> None:
    """`draw` makes the picture, and imports matplotlib itself: that is slow to load."""
    if json is not None:
        outputs.write(json, jsonlib.dumps(found, indent=2) + "\n")
        console.note(f"wrote {json}")
    if plot is not None and draw is not None:
        outputs.make(plot, lambda to: draw(found, to))
        console.note(f"drew {plot}")


def read(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return jsonlib.loads(path.read_text())
    except OSError as error:
        raise OffpathError(Code.INPUT_FILE, f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise OffpathError(Code.INPUT_FILE, f"{path}: not JSON, or cut off: {error}") from error
