"""MPI jobs in which devices are ranks, too. The job has one MPMD command line, which tells each program
whether it is a host or a device, and on which node.

The C side is include/offpath/device_ranks.h. It splits such a job by the variables that are set here. Only
`read_devices` and `read_machines` touch files.
"""

from dataclasses import dataclass, field
from pathlib import Path

from offpath.codes import Code
from offpath.errors import OffpathError

KIND_VARIABLE = "OFFPATH_RANK_KIND"
NODE_VARIABLE = "OFFPATH_NODE_INDEX"
HOST, DEVICE = "host", "device"
_LAUNCHERS = ("mpirun", "mpiexec", "orterun")

# Open MPI's options, grouped by the number of words that follow each. Open MPI treats single and double
# dashes alike.
_FLAGS = frozenset([
    "allow-run-as-root", "oversubscribe", "nooversubscribe", "use-hwthread-cpus", "report-bindings",
    "display-map", "display-allocation", "display-topo", "display-devel-map", "display-devel-allocation",
    "tag-output", "timestamp-output", "verbose", "v", "quiet", "q", "enable-recovery", "disable-recovery",
    "merge-stderr-to-stdout", "debug-daemons", "d", "debug-devel", "leave-session-attached", "xml",
    "do-not-resolve", "novm", "get-stack-traces", "bynode", "byslot",
])  # fmt: skip
_ONE_WORD = frozenset([
    "x", "bind-to", "map-by", "rank-by", "wdir", "wd", "path", "prefix", "output-filename", "stdin",
    "timeout", "report-pid", "report-uri", "preload-files", "tune", "am", "cpu-set", "cpu-list",
    "max-restarts", "personality", "dvm", "ompi-server", "report-state-on-timeout",
])  # fmt: skip
_TWO_WORDS = frozenset(["mca", "gmca"])
_COUNTS = frozenset(["n", "np", "c"])
_PER_NODE = frozenset(["N", "npernode"])
_HOSTFILE = frozenset(["hostfile", "machinefile"])
_PLACED_HERE = frozenset(
    [
        "host",
        "H",
        "rankfile",
        "rf",
        "app",
        "default-hostfile",
        "slot-list",
        "npersocket",
        "pernode",
        "nolocal",
    ]
)
_OF_ONE_PROGRAM = frozenset(
    ["x", "wdir", "wd", "path", "prefix"]
)  # Open MPI reads these anew for each program
# The other options name directories of the hosts' installation.
_FOR_DEVICES_TOO = frozenset(["x", "wdir", "wd"])


@dataclass(frozen=True)
class Program:
    """One program of the command line: ranks of one kind on one machine."""

    kind: str
    node: int
    machine: str
    ranks: int
    command: list[str]
    options: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        return [
            "-n",
            str(self.ranks),
            "--host",
            f"{self.machine}:{self.ranks}",
            "-x",
            f"{KIND_VARIABLE}={self.kind}",
            "-x",
            f"{NODE_VARIABLE}={self.node}",
            *self.options,
            *self.command,
        ]


def mpmd(launcher: list[str], programs: list[Program]) -> list[str]:
    """The command line. Hosts come first, so they are the first ranks of MPI_COMM_WORLD, as in a job without
    devices."""
    line = list(launcher)
    for index, program in enumerate(sorted(programs, key=lambda program: program.kind != HOST)):
        line += [":"] * (index > 0) + program.words()
    return line


@dataclass(frozen=True)
class Machine:
    name: str
    slots: int = 1
    node: str | None = None  # for a device: the name of its host, if the file gives it


def read_devices(text: str) -> list[Machine]:
    """Reads the value of `--devices` or OFFPATH_DEVICES: a file, named with or without @, or a list of
    NODE=ADDRESS or ADDRESS."""
    if text.startswith("@") or "/" in text or ("=" not in text and Path(text).is_file()):
        return read_machines(Path(text.removeprefix("@")), devices=True)
    return parse_machines(
        "\n".join(part.replace("=", " ", 1) for part in text.split(",")), "devices", devices=True
    )


def read_machines(path: Path, devices: bool) -> list[Machine]:
    try:
        text = path.read_text()
    except OSError as error:
        raise OffpathError(
            Code.INPUT_FILE, f"{path} cannot be read: {error.strerror}", "name a file with one machine a line"
        ) from error
    return parse_machines(text, str(path), devices)


def parse_machines(text: str, where: str, devices: bool) -> list[Machine]:
    """Parses a file of machines. A line for a host is `NAME [slots=N]`. A line for a device is `ADDRESS
    [slots=N]`, in the order of the hosts, or `NODE ADDRESS [slots=N]`."""
    form = "NODE ADDRESS [slots=N] or ADDRESS [slots=N]" if devices else "NAME [slots=N]"
    machines = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        names = [word for word in words if "=" not in word]
        settings = [word for word in words if "=" in word]
        if not words:
            continue
        key, _, value = settings[0].partition("=") if settings else ("slots", "", "1")
        if (
            not 1 <= len(names) <= (2 if devices else 1)
            or len(settings) > 1
            or key != "slots"
            or not value.isdigit()
            or int(value) < 1
        ):
            raise OffpathError(
                Code.DEVICES, f"{where}, line {number}: {line.strip()!r} is not understood", f"write {form}"
            )
        node = names[0] if len(names) == 2 else None
        # In a list for OFFPATH_DEVICES, the port is the daemon's. MPI does not use it to start ranks.
        name = names[-1].rpartition(":")[0] if devices and names[-1].count(":") == 1 else names[-1]
        machines.append(Machine(name, int(value), node))
    if not machines:
        raise OffpathError(Code.DEVICES, f"{where} names no machine", f"write lines of the form {form}")
    if devices and len({machine.node is None for machine in machines}) > 1:
        raise OffpathError(
            Code.DEVICES,
            f"{where} names the node in some lines and not in others",
            "write NODE ADDRESS in all lines, or ADDRESS in all",
        )
    if not devices and len({machine.name for machine in machines}) < len(machines):
        raise OffpathError(Code.DEVICES, f"{where} names a host twice", "write one line a host, with slots=N")
    return machines


def pair_machines(hosts: list[Machine], devices: list[Machine]) -> list[list[Machine]]:
    """The devices of each host."""
    if devices[0].node is None:
        if len(devices) != len(hosts):
            raise OffpathError(
                Code.DEVICES,
                f"there are {len(hosts)} hosts and {len(devices)} devices, and the devices' file does not say"
                " which belong together",
                "name as many devices as hosts, in the same order, or write NODE ADDRESS in each line",
            )
        return [[device] for device in devices]
    known = {host.name: index for index, host in enumerate(hosts)}
    found: list[list[Machine]] = [[] for _ in hosts]
    for device in devices:
        if device.node not in known:
            raise OffpathError(
                Code.DEVICES,
                f"device {device.name} belongs to {device.node}, which is not among the hosts",
                "hosts: " + ", ".join(known),
            )
        found[known[device.node]].append(device)
    without = [host.name for host, its in zip(hosts, found, strict=True) if not its]
    if without:
        raise OffpathError(
            Code.DEVICES,
            f"no device is named for {', '.join(without)}",
            "give every host a device, or leave the host out",
        )
    return found


@dataclass(frozen=True)
class Part:
    """One program of a command line, as the user wrote it."""

    options: list[tuple[str, list[str]]]  # name without dashes, then all words of the option
    command: list[str]
    total: int | None = None
    per_node: int | None = None
    hostfile: Path | None = None

    def words(self, names: frozenset[str] | None = None, without: frozenset[str] = frozenset()) -> list[str]:
        return [
            word
            for name, words in self.options
            for word in words
            if (names is None or name in names) and name not in without
        ]


def parse_part(words: list[str], what: str) -> Part:
    options: list[tuple[str, list[str]]] = []
    total = per_node = hostfile = None
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at].lstrip("-")
        follow = 0 if name in _FLAGS else 2 if name in _TWO_WORDS else 1
        if name in _PLACED_HERE:
            raise OffpathError(
                Code.OPTION,
                f"mpirun's {words[at]} cannot be used here",
                "with --dpu-ranks the ranks' places come from the files of hosts and devices",
            )
        if follow == 1 and name not in _ONE_WORD | _COUNTS | _PER_NODE | _HOSTFILE:
            raise OffpathError(
                Code.OPTION,
                f"mpirun's option {words[at]} is not known here",
                "set parameters as variables instead: OMPI_MCA_name=value",
            )
        if at + follow >= len(words):
            raise OffpathError(Code.OPTION, f"mpirun's {words[at]} lacks a value, or no program follows it")
        value = words[at + follow]
        if name in _COUNTS | _PER_NODE and (not value.isdigit() or int(value) < 1):
            raise OffpathError(
                Code.OPTION,
                f"mpirun's {words[at]} {value} is out of range",
                "use a number of ranks, 1 or more",
            )
        if name in _COUNTS:
            total = int(value)
        elif name in _PER_NODE:
            per_node = int(value)
        elif name in _HOSTFILE:
            hostfile = Path(value)
        else:
            options.append((name, words[at : at + 1 + follow]))
        at += 1 + follow
    if at == len(words) and what == "the hosts":
        raise OffpathError(
            Code.OPTION,
            "no program is given",
            "write offpath run --dpu-ranks ... -- mpirun [OPTIONS] PROGRAM [ARGS]",
        )
    return Part(options, words[at:], total, per_node, hostfile)


def rank_counts(part: Part, slots: list[int], what: str) -> list[int]:
    """The number of ranks on each machine: by slots, or else equal numbers."""
    if part.per_node is not None:
        if part.total is not None and part.total != part.per_node * len(slots):
            raise OffpathError(
                Code.OPTION,
                f"{part.total} ranks of {what} are not {part.per_node} on each of {len(slots)} machines",
                "leave one of the two numbers out",
            )
        return [part.per_node] * len(slots)
    if part.total is None or part.total == sum(slots):
        return slots
    if part.total % len(slots) != 0:
        raise OffpathError(
            Code.OPTION,
            f"{part.total} ranks cannot be dealt out evenly to {len(slots)} machines of {what}, which have"
            f" {sum(slots)} slots",
            f"use a multiple of {len(slots)}, or as many ranks as there are slots",
        )
    return [part.total // len(slots)] * len(slots)


def build(
    command: list[str], hosts: list[Machine] | None, devices: list[Machine], device_program: list[str] | None
) -> list[str]:
    """The MPMD command line of `mpirun [OPTIONS] PROGRAM [ARGS] [: [OPTIONS] DEVICE_PROGRAM [ARGS]]`."""
    if Path(command[0]).name not in _LAUNCHERS:
        raise OffpathError(
            Code.OPTION,
            f"--dpu-ranks builds the command line of Open MPI's mpirun, not of {Path(command[0]).name}",
            f"with another launcher set {KIND_VARIABLE} and {NODE_VARIABLE} for each program yourself:"
            " docs/device-ranks.md",
        )
    parts: list[list[str]] = [[]]
    for word in command[1:]:
        parts.append([]) if word == ":" else parts[-1].append(word)
    if len(parts) > 2:
        raise OffpathError(
            Code.OPTION,
            f"{len(parts)} programs are given",
            "write the hosts' program, and after a colon the devices' if it is another one",
        )
    host_part = parse_part(parts[0], "the hosts")
    device_part = parse_part(parts[1], "the devices") if len(parts) == 2 else Part([], [])
    if device_part.command and device_program:
        raise OffpathError(
            Code.OPTION,
            "the devices' program is given twice",
            "give either --device-program or a program after the colon",
        )
    for part in (host_part, device_part):
        if part.hostfile is not None and (part is device_part or hosts is not None):
            raise OffpathError(
                Code.DEVICES, "mpirun's --hostfile contradicts the files of hosts and devices", "leave it out"
            )
    if hosts is None:
        if host_part.hostfile is None:
            raise OffpathError(
                Code.DEVICES,
                "the hosts are not known",
                "name them with --hosts FILE, or with mpirun's --hostfile",
            )
        hosts = read_machines(host_part.hostfile, devices=False)
    paired = pair_machines(hosts, devices)
    flat = [(node, device) for node, its in enumerate(paired) for device in its]
    host_counts = rank_counts(host_part, [host.slots for host in hosts], "the hosts")
    device_counts = rank_counts(device_part, [device.slots for _, device in flat], "the devices")
    device_command = device_part.command or (
        [*device_program, *host_part.command[1:]] if device_program else host_part.command
    )

    own = host_part.words(_OF_ONE_PROGRAM)
    shared = host_part.words(_FOR_DEVICES_TOO) + device_part.words()
    programs = [
        Program(HOST, node, host.name, count, host_part.command, own)
        for node, (host, count) in enumerate(zip(hosts, host_counts, strict=True))
    ]
    programs += [
        Program(DEVICE, node, device.name, count, device_command, shared)
        for (node, device), count in zip(flat, device_counts, strict=True)
    ]
    return mpmd([command[0], *host_part.words(without=_OF_ONE_PROGRAM)], programs)
