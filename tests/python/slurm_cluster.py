"""Runs Slurm's own daemons on the nodes of a lab, and commands as a user of that cluster.

Usage: python slurm_cluster.py GROUPS WORDS...
WORDS are those of the plug-in's line in plugstack.conf; ROOM becomes DIRECTORY. GROUPS is empty, or the name
before `-NODE` of the nodes' control groups, to which Slurm then confines steps.
It is started as `unshare` starts a lab (offpath.lab.sandbox), so that all daemons end with it. It prints
`{"room": DIRECTORY}` when the nodes are idle. Then it reads one JSON object a line:
    {"command": [...], "environment": {...}, "limit_s": SECONDS, "user": UID or null}
It runs the command on the head node and answers: {"code": EXIT_CODE, "out": TEXT, "error": TEXT}.
"""

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

from offpath.artifacts import find_artifacts
from offpath.lab import network
from offpath.lab.cluster import Cluster, LabSpec
from offpath.lab.node import Node

NODES = 2
_READY_S = 60.0

_SLURM_CONF = """
ClusterName=lab
SlurmctldHost=head({head})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={room}/munge.sock
CredType=cred/munge
StateSaveLocation={room}/state
SlurmdSpoolDir={room}/spool-%n
TmpFS={room}/tmp-%n
SlurmctldPidFile={room}/slurmctld.pid
SlurmdPidFile={room}/slurmd-%n.pid
PlugStackConfig={room}/plugstack.conf
ProctrackType={track}
TaskPlugin={task}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=pmix
SchedulerParameters=batch_sched_delay=0
ReturnToService=2
KillWait=2
InactiveLimit=0
{nodes}
PartitionName=lab Nodes=ALL Default=YES State=UP OverSubscribe=NO
"""


def hardware() -> str:
    """How slurmd describes this machine's cores."""
    said = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=True).stdout
    return re.sub(r"NodeName=\S+ | RealMemory=\S+|UpTime=.*", "", said).strip()


def configure(room: Path, plugin: Path, arguments: list[str], confines: bool) -> Path:
    cores = hardware()
    nodes = "\n".join(
        f"NodeName={network.node_name(i)} NodeAddr={network.node_address(i)} {cores}" for i in range(NODES)
    )
    (room / "slurm.conf").write_text(
        _SLURM_CONF.format(
            head=network.HEAD_ADDRESS,
            room=room,
            nodes=nodes,
            track="proctrack/cgroup" if confines else "proctrack/linuxproc",
            task="task/affinity,task/cgroup" if confines else "task/affinity",
        )
    )
    (room / "plugstack.conf").write_text(" ".join(["required", str(plugin), *arguments]) + "\n")
    # This plug-in of Slurm is content with nodes that have no control groups.
    constrain = "yes" if confines else "no"
    (room / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\nConstrainCores={constrain}\n")
    return room / "slurm.conf"


def in_groups(groups: str, node: Node, command: list[str]) -> list[str]:
    """Runs a command of a node in its control groups. The command sees nothing above them."""
    join = 'for kind in cpuset freezer; do echo $$ >/sys/fs/cgroup/$kind/$0/cgroup.procs; done; exec "$@"'
    mount = """mount -t tmpfs tmpfs /sys/fs/cgroup
        for kind in cpuset freezer; do
            mkdir /sys/fs/cgroup/$kind; mount -t cgroup -o $kind cgroup /sys/fs/cgroup/$kind
        done
        exec "$@" """
    inside = ["unshare", "--cgroup", "--mount", "sh", "-ec", mount, "sh", *command]
    return ["sh", "-ec", join, f"{groups}-{node.name}", *node.command(inside)]


def start(room: Path, name: str, command: list[str]) -> subprocess.Popen:
    with open(room / f"{name}.log", "wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def run(command: list[str], environment: dict, limit_s: float, user: int | None) -> dict:
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    try:
        done = subprocess.run(
            command,
            env={k: v for k, v in os.environ.items() if not k.startswith("OFFPATH")} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired as ended:
        return {"code": 124, "out": str(ended.stdout), "error": str(ended.stderr)}
    return {"code": done.returncode, "out": done.stdout, "error": done.stderr}


def idle(nodes: int) -> bool:
    said = subprocess.run(["sinfo", "-h", "-o", "%T %D"], capture_output=True, text=True).stdout
    return said.strip() == f"idle {nodes}"


def main(groups: str, arguments: list[str]) -> None:
    artifacts = find_artifacts()
    with Cluster(LabSpec(nodes=NODES, turns_us=None), artifacts, namespaced=True) as cluster:
        room = cluster.room
        room.chmod(0o711)  # jobs of other users read files here
        for node in cluster.nodes:
            (room / f"spool-{node.name}").mkdir()
            (room / f"tmp-{node.name}").mkdir()
        (room / "steps").mkdir()
        (room / "steps").chmod(0o1777)
        os.environ["SLURM_CONF"] = str(
            configure(
                room,
                artifacts.root / "lib/offpath_spank.so",
                [word.replace("ROOM", str(room)) for word in arguments],
                bool(groups),
            )
        )
        os.environ["SLURMSTEPD_OOM_ADJ"] = "-1000"  # as Slurm's task/cgroup sets it
        key = room / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = [f"--{what}-file={room}/munge.{what}" for what in ("pid", "log", "seed")]
        start(
            room,
            "munged",
            ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={room}/munge.sock", *files],
        )
        while not (room / "munge.sock").exists():
            time.sleep(0.05)
        start(room, "slurmctld", ["slurmctld", "-D"])
        for node in cluster.nodes:
            slurmd = ["slurmd", "-D", "-N", node.name]
            start(room, node.name, in_groups(groups, node, slurmd) if groups else node.command(slurmd))
        until = time.monotonic() + _READY_S
        while not idle(NODES) and time.monotonic() < until:
            time.sleep(0.2)
        if not idle(NODES):
            logs = [path.read_text(errors="replace")[-2000:] for path in sorted(room.glob("*.log"))]
            print("\n".join(logs), file=sys.stderr)
            sys.exit(1)
        print(json.dumps({"room": str(room)}), flush=True)
        with contextlib.suppress(BrokenPipeError):
            for line in sys.stdin:
                print(json.dumps(run(**json.loads(line))), flush=True)


if __name__ == "__main__":
    # Process 1 reaps what the daemons leave.
    worker = os.fork()
    if worker == 0:
        main(sys.argv[1], sys.argv[2:])
    else:
        while True:
            process, status = os.wait()
            if process == worker:
                sys.exit(os.waitstatus_to_exitcode(status))
