"""Runs this command again inside namespaces of its own, as root or as an ordinary user.

Both work in the same way: `unshare` makes user (only if not root), mount, network, pid, ipc and UTS
namespaces, and starts `offpath.lab.init` as their process 1. Nothing is registered outside, neither in
/var/run/netns nor in other files, so everything ends with process 1. The command outside only waits, passes
signals on, and holds a pipe. Closing the pipe ends the lab.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from offpath import system_tools
from offpath.artifacts import for_command
from offpath.codes import Code
from offpath.errors import NamespacesUnavailable, OffpathError
from offpath.lab import owner

INSIDE = "OFFPATH_LAB_INSIDE"
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_NAMESPACES = [
    "--mount",
    "--net",
    "--pid",
    "--ipc",
    "--uts",
    "--fork",
    "--kill-child=SIGKILL",
    "--mount-proc",
    "--propagation",
    "private",
]


def inside() -> bool:
    return INSIDE in os.environ


def owner_mark() -> str:
    """The mark of the command that the user started. It is the same inside the lab."""
    return os.environ.get(INSIDE) or owner.mark()


def unshare_command(privileged: bool) -> list[str]:
    return ["unshare", *([] if privileged else ["--user", "--map-root-user"]), *_NAMESPACES]


def has_privileges() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            capabilities = int(line.split()[1], 16)
            return all(capabilities >> bit & 1 for bit in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))
    return False


def probe() -> bool:
    """The `privileged` argument that works here. Raises NamespacesUnavailable, with the kernel's reason, if
    none does."""
    reasons = []
    for privileged in [True, False] if has_privileges() else [False]:
        try:
            done = subprocess.run(
                [*unshare_command(privileged), "ip", "link", "add", "type", "veth"],
                env=system_tools.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reasons.append(str(error))
            continue
        if done.returncode == 0:
            return privileged
        reasons.append(done.stderr.strip() or f"unshare ended with code {done.returncode}")
    raise NamespacesUnavailable(
        Code.NO_LAB,
        "this machine or account cannot make the namespaces of an emulated cluster: " + "; ".join(reasons),
        "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or a container"
        " started with --privileged); without them only the one-node mode works: --nodes 1",
    )


def run_inside(command_line: list[str]) -> int:
    """Runs `offpath COMMAND_LINE` inside new namespaces and returns its exit code."""
    privileged = probe()
    control_read, control_write = os.pipe()
    status_read, status_write = os.pipe()
    init = subprocess.Popen(
        [
            *unshare_command(privileged),
            sys.executable,
            "-m",
            "offpath.lab.init",
            owner.mark(),
            str(control_read),
            str(status_write),
            *command_line,
        ],
        pass_fds=(control_read, status_write),
        env=for_command(os.environ),
        # The worker gets a session of its own. So Ctrl-C reaches only this process, which passes it on in
        # order.
        start_new_session=True,
    )
    os.close(control_read)
    os.close(status_write)

    interrupts = 0

    def pass_on(number, _frame):
        nonlocal interrupts, control_write
        interrupts += 1
        if interrupts > 2 and control_write >= 0:
            os.close(control_write)
            control_write = -1
        if control_write >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(control_write, b"i" if number == signal.SIGINT else b"t")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = init.wait()
    with open(status_read, "rb") as status:
        said = status.read()
    if not said:
        raise NamespacesUnavailable(
            Code.LAB_FAILED,
            f"the lab's first process could not be started (code {code})",
            "see the message above",
        )
    if said != b"1.":
        raise OffpathError(Code.LAB_FAILED, "the lab was killed from outside; all of it has ended", code=137)
    return code if code >= 0 else 128 - code
