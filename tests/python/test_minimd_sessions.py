"""Small real sessions of the miniMD studies."""

import json
import subprocess

import pytest

from offpath import osu
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError
from offpath.minimd import plot, roofline, sources
from offpath.minimd.study import STUDIES


@pytest.fixture
def program():
    artifacts = find_artifacts()
    try:
        path = artifacts.program(sources.PROGRAM)
        artifacts.daemon, artifacts.mpi_preload, artifacts.program(osu.PROGRAM)
    except OffpathError as error:
        pytest.skip(str(error))
    if "--split-boundary" not in subprocess.run([path, "--help"], capture_output=True, text=True).stdout:
        pytest.skip("this minimd knows no devices")
    return path


SMALL = ("--atoms", "864", "--steps", "10", "--runs", "1", "--intervals", "1")


@pytest.mark.parametrize("name", STUDIES)
def test_a_small_session(offpath, namespaces, program, tmp_path, name):
    more = {
        "tdr": ("--steps", "20", "--intervals", "10", "--skins", "0.3"),
        "devices": ("--nodes", "1"),
        "auxiliary": ("--device-slowness", "2"),
        "manual": ("--nodes", "2", "--intensities", "1"),
        "halo": ("--nodes", "2", "--intervals", "5"),
        "model": ("--device-slowness", "1"),
        "breakdown": ("--nodes", "1,2"),
        "slowdown": ("--nodes", "2"),
    }.get(name, ("--nodes", "1"))
    report, picture = tmp_path / "s.json", tmp_path / "s.png"
    # To load matplotlib in each lab takes as long as the runs.
    drawn = ("--plot", str(picture)) if name == "slowdown" else ()
    done = offpath("study", f"minimd-{name}", *SMALL, *more, "--json", str(report), *drawn, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    if not drawn:
        plot.draw(found, picture)
    assert found["study"] == f"minimd-{name}" and found["rows"] and "machine" in found and picture.exists()
    for row in found["rows"]:
        assert row["atoms"] == 864 and row["source"] == "lab" and row["total_s"] > 0 and row["force_s"] > 0
        assert row["force_s"] + row["neigh_s"] + row["comm_s"] <= 1.01 * row["total_s"]
    if name == "tdr":
        # Nothing leaves the skin in 20 steps, so old lists are as good as new ones.
        assert all(
            abs(row["max_dt"]) < 1e-9 and abs(row["max_energy_change"]) < 0.01 for row in found["rows"]
        )
    if name == "breakdown":
        assert {row["nodes"] for row in found["rows"]} == {1, 2}


def test_target_regions_give_the_forces_of_the_runtime(offpath, namespaces, program, tmp_path):
    if not (program.parents[1] / "lib/libminimd-target.so").exists():
        pytest.skip("built without clang 16, so minimd has no target regions")
    found = {}
    for kind, dpu in (("runtime", "remote"), ("openmp", "remote"), ("openmp", "local")):
        report = tmp_path / f"{kind}.json"
        run = ["-s", "4", "-n", "20", "--offpath", "paper", "--device-kind", kind, "--json", str(report)]
        done = offpath("lab", "run", "--nodes", "2", "--dpu", dpu, "--", str(program), *run, timeout=120)
        assert done.returncode == 0, done.stderr
        found[kind, dpu] = json.loads(report.read_text())
    runtime = found.pop(("runtime", "remote"))
    for regions in found.values():
        assert regions["device_share"] == 1 and regions["ranks"] == 2
        assert regions["thermo"] == runtime["thermo"]


def test_the_roofline_of_small_lists(offpath, program, tmp_path):
    if not (program.parent / roofline.PROGRAM).exists():
        pytest.skip(f"{roofline.PROGRAM} is not built")
    text = "title\n\nlj\nnone\nlj\n1 1\n4 4 4\n5\n0.005\n1.44\n0.8442\n5\n2.5 0.3\n5\n"
    (tmp_path / "in.lj").write_text(text)
    refused = subprocess.run(
        [program.parent / roofline.PROGRAM, "-i", "in.lj", "--json", "in.lj"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (
        refused.returncode == 2
        and "would overwrite" in refused.stderr
        and (tmp_path / "in.lj").read_text() == text
    )
    report, picture = tmp_path / "r.json", tmp_path / "r.png"
    done = offpath(
        "study",
        "minimd-roofline",
        "--atoms",
        "1372",
        "--steps",
        "6",
        "--runs",
        "1",
        "--json",
        str(report),
        "--plot",
        str(picture),
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert picture.stat().st_size > 10000
    assert {(row["precision"], row["loop"]) for row in found["rows"]} == {
        (p, loop) for p in roofline.PRECISIONS for loop in ("lj", "eam densities", "eam forces")
    }
    for row in found["rows"]:
        # Half of the neighbours within 2.5 at this density: 2/3 pi 2.5^3 0.8442. For copper within 4.95: half
        # of the 42 atoms in three shells, and those that come near.
        expected = 27.6 if row["loop"] == "lj" else 21
        assert abs(row["pairs_per_atom"] - expected) < 0.1 * expected, row
        assert row["tested_pairs_per_atom"] > row["pairs_per_atom"]
        assert (
            abs(row["flops_per_s"] - row["flops_per_atom"] / row["ns_per_atom"] * 1e9)
            < 1e-6 * row["flops_per_s"]
        )
        assert row["percent_of_limit"] > 0
    assert {peak["precision"] for peak in found["peaks"]} == set(roofline.PRECISIONS)
    assert all(peak["flops_per_s"] > 0 for peak in found["peaks"])
