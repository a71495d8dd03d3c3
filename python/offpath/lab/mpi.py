"""Command lines and environments for the real MPI: how mpirun, or MPICH's mpiexec, reaches the nodes, and
what the ranks see."""

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from offpath import preload
from offpath.lab import network
from offpath.lab.node import Node


@dataclass(frozen=True)
class Engine:
    """A way to run a program: the host's MPI with certain settings, or with its communication offloaded."""

    name: str
    label: str
    offload: bool = False
    wide: bool = False  # host ranks may also use the device's cores, and there is no device
    mca: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # additional variables of the ranks
    mpich: bool = False  # run PROGRAM-mpich instead of PROGRAM: see twins.py
    # The engine that has the same library and nothing else. This engine is also compared with that one.
    alone: str | None = None
    # The device runs on the node itself, even in a lab whose devices have machines of their own.
    local: bool = False
    # The MPI front end is loaded if communication is offloaded. Other libraries find their device themselves.
    front_end: bool = True


HOST = Engine("host", "host MPI")
OFFPATH = Engine("offpath", "offpath", offload=True)
# The rivals in software: the host's MPI with its own progress thread, with the device's core, and with both.
# Open MPI's thread drains the sockets of the TCP transport, but the protocol above advances only inside MPI
# calls. MPICH's thread makes all progress. So a program that is built with both libraries also runs on MPICH.
_THREAD_MCA = {"btl_tcp_progress_thread": "1"}
_THREAD_ENVIRONMENT = {"MPIR_CVAR_ASYNC_PROGRESS": "1"}
_THREAD_NAME = "its progress thread"
BASELINES = [
    Engine("host+thread", f"host MPI with {_THREAD_NAME}", mca=_THREAD_MCA, environment=_THREAD_ENVIRONMENT),
    Engine("host+core", "host MPI given the device's cores", wide=True),
    Engine(
        "host+core+thread",
        f"host MPI given the device's cores, with {_THREAD_NAME}",
        wide=True,
        mca=_THREAD_MCA,
        environment=_THREAD_ENVIRONMENT,
    ),
    Engine("mpich", "MPICH", mpich=True),
    Engine(
        "mpich+core+thread",
        "MPICH given the device's cores, with its asynchronous progress",
        wide=True,
        mpich=True,
        alone="mpich",
        mca=_THREAD_MCA,
        environment=_THREAD_ENVIRONMENT,
    ),
]
RIVALS = [
    "host+thread",
    "host+core",
    "mpich",
    "mpich+core+thread",
]  # the strongest one, and the one to compare it with
RIVALS_OF_MPICH = ["host+core", "host+core+thread"]  # for a program that is built with MPICH anyway
ENGINES = {engine.name: engine for engine in [HOST, OFFPATH, *BASELINES]}


def mca_settings(namespaced: bool, engine: Engine, extra: dict[str, str]) -> dict[str, str]:
    settings = {
        "pml": "ob1",
        "btl": "self,vader,tcp",
        "btl_base_warn_component_unused": "0",
        # osc rdma accepts TCP but then cannot create a window. osc ucx does not work with pml ob1.
        "osc": "sm,pt2pt",
        # Each rank of a lab stands for a core of its own: a rank that waits must not make the others faster,
        # so it keeps its turns. Without a lab the ranks share the machine's cores as usual.
        "mpi_yield_when_idle": "0" if namespaced else "1",
        "plm": "rsh",
        # The messages of a job that fails are shown one by one, not aggregated with a delay.
        "orte_base_help_aggregate": "0",
    }
    if namespaced:
        settings |= {
            "btl_tcp_if_include": network.INTERFACE,
            "oob_tcp_if_include": network.INTERFACE,
            "plm_rsh_no_tree_spawn": "1",
            # Otherwise the ranks of each node have a session of their own, and with it, where Linux groups
            # processes by session, a scheduling group. We have seen Linux 6.18 leave out such groups for a
            # minute while other ranks of the job waited actively.
            "orte_leave_session_attached": "1",
            # The agents of all nodes then stay, and all of them must be allowed at the same time.
            "plm_rsh_num_concurrent": str(network.MAX_NODES),
        }
    else:
        settings |= {"btl_tcp_if_include": "lo"}
    return settings | engine.mca | extra


def hostfile(nodes: list[Node], ranks_per_node: int) -> str:
    return "".join(f"{node.name} slots={ranks_per_node}\n" for node in nodes)


def agent_script(
    nodes: list[Node], engine: Engine, scratch: Path, limits: dict[str, Path] | None = None
) -> str:
    """The script that mpirun calls instead of ssh: `AGENT NODE COMMAND...` runs COMMAND on NODE, pinned, with
    the node's own TMPDIR.

    NODE may also be the machine of a device. `limits` names, for some machines, the control group that
    everything started there enters.
    """
    cases = []
    for machine, cpus in [(node, rank_cpus(node, engine)) for node in nodes] + [
        (node.dpu, node.placement.device) for node in nodes if node.dpu
    ]:
        enter = shlex.join(machine.command(["env", f"TMPDIR={scratch / machine.name}", "sh", "-c"], cpus))
        group = (limits or {}).get(machine.name)
        limit = f"echo $$ >{shlex.quote(str(group / 'cgroup.procs'))} || exit 1; " if group else ""
        cases.append(f'{machine.name}) {limit}exec {enter} "$*" ;;')
    return "\n".join(
        [
            "#!/bin/sh",
            "node=$1",
            "shift",
            'case "$node" in',
            *cases,
            "esac",
            'echo "offpath lab: there is no node $node" >&2',
            "exit 1",
            "",
        ]
    )


def rank_cpus(node: Node, engine: Engine) -> tuple[int, ...]:
    return node.placement.everything if engine.wide else node.placement.host


def rank_environment(
    engine: Engine, attach: dict[str, str], front_end: Path | None, extra: dict[str, str]
) -> dict[str, str]:
    """The variables that the ranks get in addition to the inherited environment. `attach` tells them how to
    find their device."""
    if not engine.offload:
        return {"OFFPATH": "off"} | engine.environment | extra
    inherited = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")} | extra
    preloads = preload.variables(front_end, inherited) if front_end else {}
    if first := engine.environment.get("LD_PRELOAD"):  # before the front end
        preloads["LD_PRELOAD"] = preload.joined(" ", first, preloads.get("LD_PRELOAD"))
    return {"OFFPATH": "on"} | attach | engine.environment | extra | preloads


def mpirun_command(
    nodes: list[Node],
    ranks_per_node: int,
    program: list[str],
    job: Path,
    mca: dict[str, str],
    environment: dict[str, str],
) -> list[str]:
    command = [
        "mpirun",
        "--allow-run-as-root",
        "-n",
        str(len(nodes) * ranks_per_node),
        "--bind-to",
        "none",
        "--oversubscribe",
    ]
    if nodes[0].holder is not None:
        command += ["--hostfile", str(job / "hostfile"), "--mca", "plm_rsh_agent", str(job / "agent")]
    else:
        command += ["--host", f"localhost:{ranks_per_node}"]
    for key, value in mca.items():
        command += ["--mca", key, value]
    for key, value in environment.items():
        command += ["-x", f"{key}={value}"]
    return [*command, *program]


def mpiexec_command(
    nodes: list[Node], ranks_per_node: int, program: list[str], job: Path, environment: dict[str, str]
) -> list[str]:
    """The command line and the environment for MPICH, whose launcher calls the agent as it would call rsh."""
    command = ["mpiexec.mpich", "-n", str(len(nodes) * ranks_per_node)]
    if nodes[0].holder is not None:
        (job / "machines").write_text("".join(f"{node.name}:{ranks_per_node}\n" for node in nodes))
        command += [
            "-launcher",
            "rsh",
            "-launcher-exec",
            str(job / "agent"),
            "-f",
            str(job / "machines"),
            "-localhost",
            network.HEAD_ADDRESS,
        ]
        # Nodes have one kernel: UCX would find that they share memory.
        environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": network.INTERFACE} | environment
    else:
        command += ["-launcher", "fork"]
    for key, value in environment.items():
        command += ["-genv", key, value]
    return [*command, *program]
