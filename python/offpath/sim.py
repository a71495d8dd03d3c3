"""Simulates a pattern of communication on a platform: finds the platform's file, and runs offpath-sim, in
which the engine of the product runs over a virtual clock, network and memory."""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from offpath import console, reports
from offpath.artifacts import Artifacts
from offpath.codes import Code
from offpath.errors import OffpathError

PLATFORMS = Path(__file__).parent / "platforms"
PROGRAM = "offpath-sim"
MEMORIES = ("map", "cma", "staged", "xgvmi")
PATTERNS = (
    "alltoall",
    "allgather",
    "bcast",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "gather",
    "scatter",
    "scan",
    "barrier",
    "halo",
    "ring",
    "put",
    "get",
)


@dataclass(frozen=True)
class SimSpec:
    """One simulation. `nodes` and `ranks_per_node` are at least 1; `size` is in bytes; `options` go to
    offpath-sim as they are."""

    platform: str
    nodes: int
    ranks_per_node: int
    pattern: str
    size: int
    engine: str
    changes: dict[str, float] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    program: Path | None = None  # a profile to replay, instead of the pattern
    memory: str | None = None  # how proxies reach host memory, instead of the platform's way

    def check(self) -> None:
        if self.pattern and self.pattern not in PATTERNS:
            raise OffpathError(
                Code.OPTION, f"pattern {self.pattern!r} is not known", "use one of " + ", ".join(PATTERNS)
            )
        if self.engine not in ("host", "offpath"):
            raise OffpathError(Code.OPTION, f"engine {self.engine!r} is not known", "use host or offpath")
        if self.memory is not None and self.memory not in MEMORIES:
            raise OffpathError(
                Code.OPTION, f"memory {self.memory!r} is not known", "use one of " + ", ".join(MEMORIES)
            )


def platform_names() -> list[str]:
    return sorted(path.stem for path in PLATFORMS.glob("*.json"))


def find_platform(name: str) -> Path:
    """The file of a platform that is named, or the file `name` itself."""
    own = PLATFORMS / f"{name}.json"
    if own.exists():
        return own
    if Path(name).is_file():
        return Path(name)
    raise OffpathError(
        Code.OPTION,
        f"platform {name!r} is not there",
        "name a file, or one of " + ", ".join(platform_names()),
    )


def parse_changes(texts: list[str]) -> dict[str, float]:
    """Understands FIELD=VALUE."""
    changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            changes[name] = float(value)
        except ValueError as error:
            raise OffpathError(
                Code.OPTION, f"--set {text!r} is not understood", "write FIELD=NUMBER, such as link_Bps=250e6"
            ) from error
    return changes


def read_figures(name: str) -> dict:
    """The figures of a platform. offpath-sim checks them."""
    path = find_platform(name)
    figures = reports.read(path)
    if not isinstance(figures, dict) or not isinstance(figures.get("name"), str):
        raise OffpathError(Code.INPUT_FILE, f"{path}: name: is missing")
    return figures


def simulate(spec: SimSpec, artifacts: Artifacts) -> dict:
    """Runs one simulation and returns what offpath-sim prints (docs/simulation.md has the fields)."""
    path = find_platform(spec.platform)
    if not spec.changes and spec.memory is None:
        return _run(spec, artifacts, path)
    figures = read_figures(spec.platform)
    if spec.memory is not None:
        figures["memory"] = spec.memory
    for name, value in spec.changes.items():
        if name not in figures:
            raise OffpathError(Code.OPTION, f"--set {name}: platform {spec.platform} has no such field")
        figures[name] = {"value": value, "source": "the command line"}
    with tempfile.TemporaryDirectory(prefix="offpath-sim-") as folder:
        changed = Path(folder) / path.name
        changed.write_text(json.dumps(figures))
        return _run(spec, artifacts, changed)


def _run(spec: SimSpec, artifacts: Artifacts, platform: Path) -> dict:
    command = [
        str(artifacts.program(PROGRAM)),
        f"--platform={platform}",
        f"--nodes={spec.nodes}",
        f"--ranks-per-node={spec.ranks_per_node}",
        *(
            [f"--program={spec.program}"]
            if spec.program
            else [f"--pattern={spec.pattern}", f"--bytes={spec.size}"]
        ),
        f"--engine={spec.engine}",
        *spec.options,
    ]
    done = console.run_with_news(command, f"simulating {spec.pattern or 'a program'}")
    if done.returncode == 1 and done.stdout:
        raise OffpathError(
            Code.WRONG_RESULTS, "the simulated operation brought wrong bytes", "this is a fault of offpath"
        )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        lines[0] = lines[0].removeprefix(f"{PROGRAM}: ").replace(str(platform), spec.platform)
        raise OffpathError(Code.JOB_FAILED, "\n".join(lines))
    return json.loads(done.stdout)
