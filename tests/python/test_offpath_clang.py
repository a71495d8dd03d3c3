"""What offpath-clang tells clang. A program that prints its arguments stands for clang."""

import os
import subprocess
from pathlib import Path

import pytest

from offpath.artifacts import find_artifacts

SCRIPT = find_artifacts().root / "bin/offpath-clang"
ARM = "aarch64-unknown-linux-gnu"
INTEL = "x86_64-pc-linux-gnu"
MACHINES = {"x86_64": 0x3E, "aarch64": 0xB7}
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="clang 16 is not there")


@pytest.fixture
def told(tmp_path):
    """Calls the script and returns the arguments that clang gets."""
    clang = tmp_path / "print-arguments"
    # What ends with .ld is printed as its contents.
    clang.write_text(
        '#!/bin/sh\nfor word; do case $word in *.ld) cat "$word" ;; *) echo "$word" ;; esac; done\n'
    )
    clang.chmod(0o755)
    libraries = tmp_path / "root/usr/lib/llvm-16/lib"
    libraries.mkdir(parents=True)
    (libraries / "libomp.so").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "aarch64-linux-gnu-gcc").write_text("#!/bin/sh\n")
    (tools / "aarch64-linux-gnu-gcc").chmod(0o755)

    def call(*arguments: str, **variables: str) -> list[str]:
        environment = dict(os.environ) | {
            "OFFPATH_CLANG": str(clang),
            "OFFPATH_AARCH64_ROOT": str(tmp_path / "root"),
            "PATH": f"{tools}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path),
        }
        done = subprocess.run(
            [SCRIPT, *arguments], env=environment | variables, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return call


def library(path: Path, machine: str) -> None:
    head = bytearray(64)
    head[:4] = b"\x7fELF"
    head[18] = MACHINES[machine]
    path.write_bytes(head)


def test_targets_of_the_user_are_linked_like_our_own(told):
    ours = told("-fopenmp", "x.c", OFFPATH_DEVICE_ARCHITECTURES="aarch64")
    assert f"-fopenmp-targets={ARM}" in ours and f"-Xoffload-linker-{ARM}" in ours
    assert told("-fopenmp", "-fopenmp-targets=aarch64-unknown-linux", "x.c") == ours
    assert told("-fopenmp-targets=aarch64-linux-gnu", "-fopenmp", "x.c") == ours
    both = told("-fopenmp", "-fopenmp-targets=x86_64-unknown-linux,aarch64-unknown-linux", "x.c")
    assert f"-fopenmp-targets={INTEL},{ARM}" in both
    words = told("-fopenmp", "x.c", "-Xoffload-linker-aarch64-unknown-linux", "-lx")
    assert words[words.index("-lx") - 1] == f"-Xoffload-linker-{ARM}"


def test_targets_that_are_no_devices_are_left_to_clang(told):
    for words in (
        ["-fopenmp", "-fopenmp-targets=nvptx64", "x.c"],
        ["-fopenmp", "--offload-arch=sm_80", "x.c"],
        ["x.c"],
    ):
        assert told(*words) == words


def test_libraries_for_the_host_alone_are_not_linked_to_code_for_aarch64(told, tmp_path):
    for folder, machine, names in (("host", "x86_64", "here both"), ("arm", "aarch64", "both")):
        (tmp_path / folder).mkdir()
        for name in names.split():
            library(tmp_path / folder / f"lib{name}.so", machine)
    words = told("-fopenmp", "x.c", "-L", "host", f"-L{tmp_path}/arm", "-lhere", "-l", "both", "-lm")
    assert "INPUT(-lhere)" in words and "-lboth" in words and "-lm" in words
    assert [words[i - 1] for i, word in enumerate(words) if word == "-lhere"] == [f"-Xoffload-linker-{INTEL}"]
    only_arm = told("-fopenmp", "-fopenmp-targets=aarch64-unknown-linux", "x.c", "-Lhost", "-lhere")
    assert "INPUT(-lhere)" in only_arm and "-lhere" not in only_arm
    only_intel = told("-fopenmp", "x.c", "-Lhost", "-lhere", OFFPATH_DEVICE_ARCHITECTURES="x86_64")
    assert "-lhere" in only_intel
    assert not list(tmp_path.glob("tmp.*"))
