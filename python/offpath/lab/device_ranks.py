"""Jobs of the lab in which devices are ranks, too: on which nodes and cores the ranks run, and the names by
which mpirun knows the machines."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from offpath.artifacts import aarch64_command
from offpath.codes import Code
from offpath.device_ranks import DEVICE, HOST, Program, mpmd
from offpath.errors import OffpathError
from offpath.lab import network, placement
from offpath.lab.node import Node, run_ip


@dataclass(frozen=True)
class Group:
    """Ranks of one kind on one node."""

    kind: str
    node: int
    ranks: int = 1
    cpus: tuple[int, ...] | None = None  # None: the cores that the placement gives to this kind on this node


@dataclass(frozen=True)
class Layout:
    """What a job with device ranks has in addition to an ordinary one."""

    groups: list[Group]
    device_program: list[str]  # with its arguments, as it runs on a device


def everywhere(nodes: int, hosts: int, devices: int) -> list[Group]:
    """`hosts` host ranks and `devices` device ranks on every node."""
    return [Group(HOST, node, hosts) for node in range(nodes)] + [
        Group(DEVICE, node, devices) for node in range(nodes)
    ]


def on_own_cores(
    groups: list[Group], placements: list[placement.NodePlacement], cores: list[tuple[int, ...]]
) -> list[Group]:
    """Gives each group cores of its own, where the placement would make groups share some cores while others
    idle.

    This is for jobs that use only a few places of the cluster at a time. On two cores, for instance, the
    placement gives one core to all hosts and the other one to all devices. Two hosts would then take turns on
    one core, although no device uses the other one.
    """
    chosen = [
        placements[group.node].host if group.kind == HOST else placements[group.node].device
        for group in groups
    ]
    used = [cpu for cpus in chosen for cpu in cpus]
    enough = all(len(cpus) >= group.ranks for cpus, group in zip(chosen, groups, strict=True))
    if enough and len(used) == len(set(used)):
        return groups
    share = max(1, len(cores) // len(groups))
    return [
        replace(
            group,
            cpus=tuple(
                sorted(cpu for core in range(share) for cpu in cores[(index * share + core) % len(cores)])
            ),
        )
        for index, group in enumerate(groups)
    ]


def command(nodes: list[Node], layout: Layout, program: list[str], environment: dict[str, str]) -> list[str]:
    """mpirun's command line. Its parameters are variables (`settings`), because they apply to all
    programs."""
    exports = [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
    programs = []
    for group in layout.groups:
        node = nodes[group.node]
        of_host = group.kind == HOST
        cpus = group.cpus or (node.placement.host if of_host else node.placement.device)
        machine = node if of_host or node.dpu is None else node.dpu
        name = machine.name if machine.holder is not None else "localhost"
        pinned = ["taskset", "-c", ",".join(map(str, cpus)), *(program if of_host else layout.device_program)]
        programs.append(Program(group.kind, group.node, name, group.ranks, pinned, exports))
    return mpmd(["mpirun"], programs)


def settings(mca: dict[str, str], agent: Path | None) -> dict[str, str]:
    """The variables for mpirun, which hands them to every program."""
    parameters = {"rmaps_base_oversubscribe": "1", "hwloc_base_binding_policy": "none"} | mca
    if agent is not None:
        parameters["plm_rsh_agent"] = str(agent)
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} | {
        f"OMPI_MCA_{key}": value for key, value in parameters.items()
    }


def route_over_pcie(nodes: list[Node]) -> None:
    """Makes a host and its own device reach each other's network address over the host-device link.

    So MPI sees one interface and one address for each rank. With two interfaces, it would use both at the
    same time where both lead to a peer. It would also try for a while to reach other nodes through the
    interface that does not lead to them.
    """
    for node in nodes:
        if node.dpu is None:
            continue
        host, device = network.node_address(node.index), network.device_address(node.index)
        run_ip([f"route replace {device}/32 dev {network.PCIE_INTERFACE} src {host}"], node.enter())
        run_ip([f"route replace {host}/32 dev {network.PCIE_INTERFACE} src {device}"], node.dpu.enter())


def device_command(dpu: str, program: list[str], device_program: str | None) -> list[str]:
    """What device ranks run: the program of the hosts, unless another one is named. With --dpu aarch64 it is
    the program of the aarch64 build, under qemu.

    The arguments are those of the hosts' program.
    """
    if device_program is not None and not os.access(device_program, os.X_OK):
        raise OffpathError(
            Code.NOT_INSTALLED,
            f"--device-program {device_program} is not an executable file",
            "give its path",
        )
    if dpu != "aarch64":
        return [str(Path(device_program).absolute()) if device_program else program[0], *program[1:]]
    return [
        *aarch64_command(str(Path(device_program).absolute()) if device_program else Path(program[0]).name),
        *program[1:],
    ]
