#!/usr/bin/env python3
"""Runs a command in a guest of this machine that has a soft-RoCE device, rxe0, and exits as the command does.

usage: guest.py FILES KEEP SECONDS COMMAND

FILES: what boot_files.sh made. KEEP: a folder that the guest shall see although it may lie below /tmp. The
guest has the files of this machine, and changes none. 124: the command took longer than SECONDS, or the guest
did not start.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_KERNEL = "console=ttyS0 panic=-1 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1 quiet"


def boot(files: Path, keep: str, share: Path) -> subprocess.Popen[bytes]:
    # Without KVM, since nested KVM is not to be had on every machine, and hangs on some.
    command = [
        "nice",
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-m",
        "1500",
        "-smp",
        "2",
    ]
    command += ["-display", "none", "-no-reboot", "-nodefaults", "-serial", f"file:{share}/console"]
    command += [
        "-kernel",
        f"{files}/vmlinuz",
        "-initrd",
        f"{files}/initrd",
        "-append",
        f"{_KERNEL} keep={keep}",
    ]
    command += ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"]
    command += ["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
    command += ["-fsdev", f"local,id=share,path={share},security_model=none"]
    command += ["-device", "virtio-9p-pci,fsdev=share,mount_tag=share", "-device", "virtio-rng-pci"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def main(files: str, keep: str, seconds: str, command: str) -> int:
    with tempfile.TemporaryDirectory(prefix="guest") as folder:
        share = Path(folder)
        shutil.copy(Path(__file__).with_name("guest.sh"), share)
        (share / "command").write_text(f"cd {Path.cwd()}\n{command}\n")
        guest = boot(Path(files), keep, share)
        try:
            guest.wait(timeout=float(seconds))
        except subprocess.TimeoutExpired:
            pass
        finally:  # also when this process is told to end
            guest.kill()
            guest.wait()
        for name in ("output", "status"):
            (share / name).touch()
        print((share / "output").read_text(errors="replace"), end="", flush=True)
        status = (share / "status").read_text()
        if not status:
            print(
                f"the guest did not end its command in {seconds} s; the last lines of its console:",
                file=sys.stderr,
            )
            print(
                "\n".join((share / "console").read_text(errors="replace").splitlines()[-20:]), file=sys.stderr
            )
        return int(status or 124)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    code = main(*sys.argv[1:]) if len(sys.argv) == 5 else print(__doc__, file=sys.stderr) or 2
    print(f"guest: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    sys.exit(code)
