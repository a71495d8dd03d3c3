"""The halo study: rows from known runs, its limits, its picture, and one small real session."""

import json

import pytest

from offpath import halo, halo_plot
from offpath.artifacts import Artifacts
from offpath.errors import OffpathError
from offpath.halo import CONTENDERS, Setting

SETTING = Setting(2, 2, 64)


def run(total: float, checksum: str = "ab") -> dict:
    return {
        "total_s": total,
        "boundary_s": 0.1,
        "interior_s": 0.4,
        "exchange_s": total - 0.5,
        "ranks": 2,
        "checksum": checksum,
    }


def test_rows_are_medians_and_ratios_to_blocking_mpi():
    taken = {contender.name: [run(2.0), run(9.0), run(1.0)] for contender in CONTENDERS}
    taken["schedule, offpath"] = [run(1.5), run(1.4), run(7.0)]
    rows = halo.rows_of(SETTING, taken)
    assert [(row["variant"], row["library"]) for row in rows] == [
        (contender.label, contender.engine.name) for contender in CONTENDERS
    ]
    assert rows[0]["total_s"] == 2.0 and rows[0]["to_mpi"] == 1
    assert [row["to_mpi"] for row in rows if row["variant"] == "schedule"] == [pytest.approx(0.75)]
    assert {row["communication_share"] for row in rows} == {0.75}


def test_a_build_without_clang_has_no_variant_target(tmp_path):
    assert [each.variant for each in halo.contenders(Artifacts(tmp_path), "local")][-1] == "schedule"
    library = tmp_path / halo.TARGET_REGIONS
    library.parent.mkdir()
    library.touch()
    assert halo.contenders(Artifacts(tmp_path), "local") == list(CONTENDERS)
    taken = {contender.name: [run(1.0)] for contender in CONTENDERS if contender.variant != "target"}
    assert len(halo.rows_of(SETTING, taken)) == len(CONTENDERS) - 2


def test_only_chosen_variants_run_beside_the_reference(tmp_path):
    library = tmp_path / halo.TARGET_REGIONS
    library.parent.mkdir()
    library.touch()
    chosen = halo.contenders(Artifacts(tmp_path), "local", ("target-device", "group"))
    assert [each.label for each in chosen] == ["mpi", "group", "target-device"]
    with pytest.raises(OffpathError, match="--variants: there is no wind"):
        halo.HaloSpec((2,), {1: (10,)}, variants=("wind",)).check()


def test_rows_of_target_say_which_way_it_went():
    taken = {contender.name: [run(1.0)] for contender in CONTENDERS}
    taken["target, offpath"] = [run(1.0) | {"way": way} for way in ("host", "device")]
    ways = {row["variant"]: row["ways"] for row in halo.rows_of(SETTING, taken)}
    assert ways["target"] == ["host", "device"] and ways["mpi"] == []


def test_different_results_end_the_study():
    taken = {contender.name: [run(1.0)] for contender in CONTENDERS}
    taken["group, offpath"] = [run(1.0, "cd")]
    with pytest.raises(OffpathError, match="2 nodes, 2-D, 64: the variants gave different results"):
        halo.rows_of(SETTING, taken)


@pytest.mark.parametrize(
    "values", [{"steps": 0}, {"runs": 0}, {"nodes": (0,)}, {"sizes": {2: (0,)}}, {"nodes": (2, 129)}]
)
def test_what_is_out_of_range_is_refused(values):
    with pytest.raises(OffpathError, match="out of range"):
        halo.HaloSpec(**({"nodes": (2,), "sizes": {1: (10,)}} | values)).check()


def test_picture(tmp_path):
    taken = {contender.name: [run(1.0)] for contender in CONTENDERS}
    rows = [row for nodes in (2, 4) for row in halo.rows_of(Setting(nodes, 3, 32), taken)]
    picture = tmp_path / "p.png"
    halo_plot.draw({"rows": rows, "steps": 5, "runs": 1, "lab": {"description": "4 nodes"}}, picture)
    assert picture.stat().st_size > 10000


@pytest.fixture
def programs(build):
    try:
        build.program(halo.PROGRAM)
    except OffpathError as error:
        pytest.skip(str(error))


def test_a_small_session(offpath, namespaces, build, programs, tmp_path):
    report, picture = tmp_path / "h.json", tmp_path / "h.png"
    done = offpath(
        "study",
        "halo",
        "--nodes",
        "1,2",
        "--sizes-1d",
        "",
        "--sizes-2d",
        "100",
        "--sizes-3d",
        "",
        "--steps",
        "4",
        "--runs",
        "1",
        "--periodic",
        "--json",
        str(report),
        "--plot",
        str(picture),
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert found["study"] == "halo" and found["periodic"]
    assert len(found["rows"]) == 2 * len(halo.contenders(build, "local"))
    by_setting = {(row["nodes"], row["dims"]): row["checksum"] for row in found["rows"]}
    # The same domain on other numbers of nodes.
    assert by_setting[1, 2] == by_setting[2, 2]
    assert picture.stat().st_size > 10000


def test_devices_with_machines_of_their_own_leave_out_the_schedule(
    offpath, namespaces, build, programs, tmp_path
):
    report = tmp_path / "h.json"
    domain = ["--sizes-1d", "", "--sizes-2d", "", "--sizes-3d", "20", "--steps", "3", "--runs", "1"]
    done = offpath("study", "halo", "--dpu", "remote", "--nodes", "2", *domain, "--json", str(report))
    assert done.returncode == 0, done.stderr
    assert "variant schedule is left out: its devices map the hosts' memory" in done.stderr
    found = json.loads(report.read_text())
    shown = [(row["variant"], row["library"]) for row in found["rows"]]
    assert shown == [(each.label, each.engine.name) for each in halo.contenders(build, "remote")]
    assert {"mpi", "group"} <= {variant for variant, _ in shown} and ("schedule", "offpath") not in shown
    assert len({row["checksum"] for row in found["rows"]}) == 1
