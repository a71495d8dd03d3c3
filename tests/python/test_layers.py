"""Rooms include what they declare (scripts/check_layers.py), and the check finds planted errors."""

import shutil
import subprocess
import sys
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


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("src", "frontends", "apps", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for file in ("docs/architecture.md", "scripts/check_layers.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


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
    tree: Path, file: str, include: str, complaint: str
) -> None:
    path = tree / file
    path.write_text(f'#include "{include}"\n' + path.read_text())
    result = check(tree)
    assert result.returncode == 1
    assert complaint in result.stderr


def test_a_declaration_that_nothing_needs_is_found(tree: Path) -> None:
    path = tree / "src/matching/CMakeLists.txt"
    path.write_text(path.read_text().replace("matcher.cpp", "matcher.cpp LINKS offpath_rma"))
    result = check(tree)
    assert result.returncode == 1
    assert "matching declares rma and includes nothing of it" in result.stderr


def test_an_upward_include_of_the_front_end_is_found_though_declared(tree: Path) -> None:
    rooms = tree / "frontends/mpi/CMakeLists.txt"
    rooms.write_text(rooms.read_text().replace("time_in_mpi.cpp)", "time_in_mpi.cpp\n  USES p2p)"))
    path = tree / "frontends/mpi/runtime/losses.h"
    path.write_text('#include "p2p/parcel.h"\n' + path.read_text())
    result = check(tree, "--front-end")
    assert result.returncode == 1
    assert "losses.h includes p2p, a room that is not below runtime" in result.stderr


def test_a_file_of_the_front_end_outside_of_its_rooms_is_found(tree: Path) -> None:
    (tree / "frontends/mpi/new.cpp").write_text("int one = 1;\n")
    result = check(tree, "--front-end")
    assert result.returncode == 1
    assert "frontends/mpi/new.cpp is in no room" in result.stderr
