import subprocess
import sys

import pytest

from conftest import SOURCE_ROOT
from offpath.lab import sandbox

SCRIPT = """
import subprocess, sys
from offpath.lab.segments import set_largest
subprocess.run(["ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0"], check=True)
print(set_largest("a0", 262144), set_largest("lo", 65536))
"""


def test_kernel_takes_the_setting(namespaces):
    done = subprocess.run(
        [*sandbox.unshare_command(sandbox.has_privileges()), sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE_ROOT / "python"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("False"):
        pytest.skip("this kernel has no setting for IPv4 segments (it came with 6.3)")
    assert done.stdout.split() == ["True", "True"]
