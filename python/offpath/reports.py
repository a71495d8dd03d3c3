"""Writes what a benchmark or a study found: a JSON file, and a picture of it."""

import json as jsonlib
from collections.abc import Callable
from pathlib import Path

from offpath import console


def write(
    found: dict,
    json: Path | None,
    plot: Path | None = None,
    draw: Callable[[dict, Path], None] | None = None,
) -> None:
    """`draw` makes the picture, and imports matplotlib itself: that is slow to load."""
    if json is not None:
        json.write_text(jsonlib.dumps(found, indent=2) + "\n")
        console.note(f"wrote {json}")
    if plot is not None and draw is not None:
        draw(found, plot)
        console.note(f"drew {plot}")
