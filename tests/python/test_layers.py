"""Rooms include what they declare (scripts/check_layers.py), and the check finds planted errors."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = root / "scripts" / "check_layers.py"
    return subprocess.run(
        [sys.executable, str(script), *options], capture_output=True, text=True, check=False
    )


def test_the_tree_is_in_order() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    for folder in ("src", "frontends", "apps", "examples"):
        shutil.copytree(ROOT / folder, copy / folder)
    for file in ("docs/architecture.md", "scripts/check_layers.py"):
        (copy / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    return copy


class Tree:
    """A copy of the tree, for one case: what the case has changed is put back."""

    def __init__(self, root: Path):
        self.root = root
        self._before: dict[Path, str | None] = {}

    def text(self, file: str) -> str:
        return (self.root / file).read_text()

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        self._before.setdefault(path, path.read_text() if path.exists() else None)
        path.write_text(text)

    def put_back(self) -> None:
        for path, text in self._before.items():
            path.unlink() if text is None else path.write_text(text)


@pytest.fixture
def tree(copied: Path) -> Iterator[Tree]:
    changed = Tree(copied)
    yield changed
    changed.put_back()


@pytest.mark.parametrize(
    ("file", "include", "complaint"),
    [
        (
            "src/engine/messages/basic.cpp",
            "engine/onesided/window.h",
            "engine_messages includes engine_onesided without declaring it",
        ),
        ("src/base/log.cpp", "engine/engine.h", "a circle of rooms"),
        ("frontends/mpi/runtime/runtime.cpp", "transport/transport.h", "frontends/mpi may see no transport"),
        (
            "frontends/mpi/requests/offloaded_requests.cpp",
            "rma/windows.h",
            "offloaded_requests.cpp includes rma, a room that is not below requests",
        ),
        ("frontends/mpi/gpu/memory.cpp", "runtime/runtime.h", "gpu includes runtime without declaring it"),
        (
            "apps/minimd/dynamics/thermo.cpp",
            "minimd/offpath/offload.h",
            "a circle of rooms: dynamics -> offpath -> dynamics",
        ),
        ("apps/minimd/report/json.cpp", "minimd/program.h", "which is above all rooms"),
        ("apps/minimd/setup/lattice.cpp", "fft3d/fields.h", "which is of another program"),
    ],
)
def test_an_include_of_a_room_that_is_not_declared_is_found(
    tree: Tree, file: str, include: str, complaint: str
) -> None:
    tree.write(file, f'#include "{include}"\n' + tree.text(file))
    result = check(tree.root)
    assert result.returncode == 1
    assert complaint in result.stderr


def test_a_declaration_that_nothing_needs_is_found(tree: Tree) -> None:
    file = "src/matching/CMakeLists.txt"
    tree.write(file, tree.text(file).replace("matcher.cpp", "matcher.cpp LINKS offpath_rma"))
    result = check(tree.root)
    assert result.returncode == 1
    assert "matching declares rma and includes nothing of it" in result.stderr


def test_an_upward_include_of_the_front_end_is_found_though_declared(tree: Tree) -> None:
    rooms, header = "frontends/mpi/CMakeLists.txt", "frontends/mpi/runtime/losses.h"
    tree.write(rooms, tree.text(rooms).replace("time_in_mpi.cpp)", "time_in_mpi.cpp\n  USES p2p)"))
    tree.write(header, '#include "p2p/parcel.h"\n' + tree.text(header))
    result = check(tree.root, "--front-end")
    assert result.returncode == 1
    assert "losses.h includes p2p, a room that is not below runtime" in result.stderr


def test_a_file_of_the_front_end_outside_of_its_rooms_is_found(tree: Tree) -> None:
    tree.write("frontends/mpi/new.cpp", "int one = 1;\n")
    result = check(tree.root, "--front-end")
    assert result.returncode == 1
    assert "frontends/mpi/new.cpp is in no room" in result.stderr
