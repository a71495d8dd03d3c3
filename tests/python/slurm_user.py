"""A cluster of Slurm for tests: its daemons on the nodes of a lab, and commands as a user of it."""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offpath.lab import owner, sandbox
from offpath.lab.network import node_name
from slurm_cluster import NODES

TOOLS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
# Messages of the tests are small. Ranks may be root, and use the lab's network. Slurm 22.05 may let a rank
# leave MPI_Init while another one is at its first fence, unless all its fences are rings (docs/slurm.md).
SETTINGS = {
    "SLURM_PMIX_FENCE": "ring",
    "OFFPATH_MIN_BYTES": "0",
    "OMPI_MCA_btl_tcp_if_include": "v0",
    "UCX_NET_DEVICES": "v0",
    "UCX_MEM_MMAP_HOOK_MODE": "none",
}
OFFLOADED = re.compile(r"offpath: offloaded ([1-9]\d*) of \1 collectives")
# Prints a rank's cores, then the cores, user, OOM killer's score and process of its node's device.
CORES = """
mine() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$1/status; }
device=$(cat "$OFFPATH_DIR"/*.pid) || device=none
about="$(stat -c %u /proc/$device) $(cat /proc/$device/oom_score_adj)"
echo "$(hostname) rank $(mine self) device $(mine $device) $about $device"
"""


class Slurm:
    """A cluster of two nodes that is up."""

    def __init__(self, process: subprocess.Popen, room: str, build: Path, groups: list[Path]):
        self.process, self.room, self.build = process, room, build
        self.groups = groups  # of the nodes; none if Slurm does not confine steps

    def run(self, *command: str, user: int | None = None, limit_s: float = 60, **variables: str):
        request = {
            "command": command,
            "environment": SETTINGS | variables,
            "limit_s": limit_s,
            "user": user,
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return subprocess.CompletedProcess(command, answer["code"], answer["out"], answer["error"])

    def shell(self, script: str, **variables: str) -> str:
        return self.run("sh", "-c", script, **variables).stdout

    def program(self, name: str) -> str:
        return str(self.build / "bin" / name)

    def daemons(self) -> list[str]:
        # The brackets keep the shell's own command line from matching.
        return self.shell(f"pgrep -f -- '--di[r] {self.room}/steps'").split()

    def clean(self) -> bool:
        """Whether no job, daemon, directory or control group of a step is left."""
        left = [path for group in self.groups for path in group.rglob("job_*")]
        return not left and not self.daemons() and not self.shell(f"ls {self.room}/steps; squeue -h")

    def fft3d(self, name: str = "fft3d") -> tuple[str, ...]:
        """The words of a program that offloads collectives and verifies their results."""
        return (self.program(name), "--n", "32", "--iterations", "2")


@contextlib.contextmanager
def control_groups(mark: str):
    """Makes control groups (version 1) for each node. Skips the test where there are none. Yields their
    paths, which end in `mark` and the node's name."""
    roots = [Path("/sys/fs/cgroup") / kind for kind in ("cpuset", "freezer")]
    if not all((root / "tasks").exists() for root in roots):
        pytest.skip("cpuset and freezer are no control groups of version 1 here")
    groups = [root / f"{mark}-{node_name(i)}" for root in roots for i in range(NODES)]
    try:
        for group in groups:
            try:
                group.mkdir()
            except OSError as error:
                pytest.skip(f"no control groups can be made: {error}")
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists():
                    (group / file).write_text((group.parent / file).read_text())
        yield groups
    finally:
        for group in groups:
            for path in [*sorted(group.rglob("*/"), reverse=True), group]:
                until = time.monotonic() + 10
                while path.is_dir() and time.monotonic() < until:
                    # Processes that were killed may still be in it.
                    with contextlib.suppress(OSError):
                        path.rmdir()


@contextlib.contextmanager
def running(build, environment: dict[str, str], confines: bool = False):
    """Starts the cluster, and ends it. Skips the test where Slurm cannot run. If Slurm `confines` steps to
    their cores, it does so by control groups."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)}")
    if not (build.root / "lib/offpath_spank.so").exists():
        pytest.skip("the plug-in for Slurm is not built: Slurm's headers were missing")
    if len(os.sched_getaffinity(0)) != os.cpu_count():
        pytest.skip("Slurm needs all cores of the machine, and some are not for this process")
    if os.geteuid() != 0 or not sandbox.probe():
        pytest.skip("Slurm's daemons need root")
    mark = f"offpath-slurm-{owner.mark()}" if confines else ""
    with control_groups(mark) if confines else contextlib.nullcontext([]) as groups:
        process = subprocess.Popen(
            [
                *sandbox.unshare_command(privileged=True),
                sys.executable,
                str(Path(__file__).with_name("slurm_cluster.py")),
                mark,
                "dir=ROOM/steps",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment
            | {
                sandbox.INSIDE: owner.mark(),
                "PATH": f"{os.environ['PATH']}:/usr/sbin",
                "OFFPATH_BUILD": str(build.root),
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            },
        )
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], 120)
            first = process.stdout.readline() if ready else ""
            assert first, "Slurm did not start: its logs are above"
            yield Slurm(process, json.loads(first)["room"], build.root, groups)
        finally:
            process.kill()
            process.communicate()


def cpus(words: str) -> set[int]:
    found = set()
    for part in words.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
