"""The table by which the MPI front end chooses: its place, its format and its meaning (docs/tuning.md)."""

import datetime
import json as jsonlib
import os
from pathlib import Path

from offpath import file_versions
from offpath.codes import Code
from offpath.errors import OffpathError

VERSION = 1
HOST, DEVICE = "host", "device"


def default_table(lab: bool = False) -> Path:
    """The path of the table that `offpath run` uses. Emulated clusters have another one, which is used only
    on request."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    return base / "offpath" / ("tuning-lab.json" if lab else "tuning.json")


def make_table(found: list[dict], where: str) -> dict:
    from offpath import stats  # `offpath run` only asks for the table's place

    return {
        "offpath_tuning": VERSION,
        "measured": {
            "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "where": where,
            **stats.environment(),
        },
        "rows": found,
    }


def merge(old: dict, new: dict) -> dict:
    """`new`, and those rows of `old` whose operations and shapes `new` does not have."""
    measured = {_shape(row) for row in new["rows"]}
    kept = [row for row in old["rows"] if _shape(row) not in measured]
    return new | {"rows": kept + new["rows"]} | ({"earlier": old["measured"]} if kept else {})


def _shape(row: dict) -> tuple:
    return row["op"], row["ranks"], row["nodes"]


def read(path: Path) -> dict:
    try:
        table = jsonlib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise OffpathError(
            Code.INPUT_FILE, f"{path} cannot be read: {error}", "leave --add out to replace it"
        ) from error
    known = isinstance(table, dict) and "offpath_tuning" in table
    if known:
        version = table["offpath_tuning"]
        file_versions.check(path, "a tuning table", version, VERSION, "leave --add out to replace it")
    if not known or not isinstance(table.get("rows"), list):
        raise OffpathError(Code.INPUT_FILE, f"{path} is no tuning table", "leave --add out to replace it")
    return table


def write(table: dict, path: Path) -> None:
    from offpath import outputs

    outputs.make_folder(path.parent, "tuning table")
    outputs.write(path, jsonlib.dumps(table, indent=1) + "\n")


def device_pays(row: dict) -> bool:
    """Whether the device is faster. Decides like frontends/mpi/tuning/cost_model does for a program whose
    computation is unknown."""
    host, device = row[HOST], row[DEVICE]
    gap = host["pure_s"]
    exposed = {
        engine: cost["pure_s"] - cost["overlap"] * min(gap, cost["pure_s"])
        for engine, cost in ((HOST, host), (DEVICE, device))
    }
    return gap + exposed[DEVICE] <= 0.95 * (gap + exposed[HOST]) and device["pure_s"] <= 1.02 * host["pure_s"]
