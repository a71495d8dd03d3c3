"""The OSU tests with devices as ranks: which ranks take part, how rows are made, and one small
real session."""

import json

import pytest

from offpath import osu
from offpath.artifacts import find_artifacts
from offpath.device_ranks import DEVICE, HOST
from offpath.errors import OffpathError
from offpath.lab.device_ranks import Group, device_command, on_own_cores
from offpath.lab.placement import place


@pytest.fixture
def program() -> str:
    try:
        return str(find_artifacts().program(osu.PROGRAM))
    except OffpathError as error:
        pytest.skip(str(error))


def said(test: str, pair: str, *values: float, sizes=(1, 1024)) -> dict:
    return {
        "test": test,
        "pair": pair,
        "run": 0,
        "unit": "us",
        "rows": [{"bytes": b, "value": v, "iterations": 1} for b, v in zip(sizes, values, strict=True)],
    }


def test_a_test_of_two_ranks_is_between_the_places_that_its_name_says():
    assert osu.places("latency", "host-host", 2, 8) == [Group(HOST, 0), Group(HOST, 1)]
    assert osu.places("bw", "dpu-dpu", 2, 8) == [Group(DEVICE, 0), Group(DEVICE, 1)]
    assert osu.places("bw", "host-dpu", 4, 8) == [Group(HOST, 0), Group(DEVICE, 0)]
    # The program pairs rank i with rank i + pairs.
    assert osu.places("mbw_mr", "host-dpu", 2, 8) == [Group(HOST, 0, 8), Group(DEVICE, 0, 8)]


@pytest.mark.parametrize("nodes", [2, 3, 4, 7])
def test_allgather_has_as_many_ranks_in_every_arrangement(nodes):
    for pair in osu.PAIRS:
        groups = osu.places("allgather", pair, nodes, 2)
        assert sum(group.ranks for group in groups) == nodes
        assert len({(group.kind, group.node) for group in groups}) == nodes
        # Hosts come first on the command line, and so in MPI_COMM_WORLD.
        assert groups == sorted(groups, key=lambda group: group.kind != HOST)
    assert [g.node for g in osu.places("allgather", "host-dpu", 4, 2)] == [0, 1, 0, 1]


def test_ranks_of_one_arrangement_get_cores_of_their_own():
    two = [(0,), (1,)]
    placements = place(2, 1, "split", two)
    for pair in osu.PAIRS:
        groups = on_own_cores(osu.places("latency", pair, 2, 1), placements, two)
        assert [group.cpus for group in groups] == ([None, None] if pair == "host-dpu" else [(0,), (1,)])
    many = [(i,) for i in range(8)]
    groups = osu.places("latency", "host-host", 2, 1)
    assert on_own_cores(groups, place(2, 1, "split", many), many) == groups
    shared = on_own_cores(osu.places("allgather", "host-host", 4, 1), place(4, 1, "split", two), two)
    assert [group.cpus for group in shared] == [(0,), (1,), (0,), (1,)]


def test_rows_are_medians_relative_to_host_host():
    found = [
        said("latency", "host-host", 10, 20),
        said("latency", "dpu-dpu", 30, 30),
        said("latency", "host-dpu", 5, 10),
    ]
    found += [said("latency", "host-host", 14, 20), said("latency", "host-host", 12, 20)]
    rows = osu.rows(found)
    assert [set(row) for row in rows] == [{"test", "pair", "bytes", "value", "unit", "relative_to_host"}] * 6
    assert [(row["bytes"], row["pair"]) for row in rows] == [(b, p) for b in (1, 1024) for p in osu.PAIRS]
    assert rows[0]["value"] == 12 and rows[0]["relative_to_host"] == 1
    assert rows[1]["relative_to_host"] == 2.5
    assert rows[5] == {
        "test": "latency",
        "pair": "host-dpu",
        "bytes": 1024,
        "value": 10,
        "unit": "us",
        "relative_to_host": 0.5,
    }


def test_message_rates_follow_from_bandwidth():
    rows = osu.rows([said("mbw_mr", pair, 2.0, 100.0) for pair in osu.PAIRS])
    assert osu.message_rates(rows)[3] == {
        "pair": "host-host",
        "bytes": 1024,
        "messages_per_s": 100e6 / 1024,
        "relative_to_host": 1.0,
    }


@pytest.mark.parametrize("values", [{"runs": 0}, {"pairs": 0}, {"window": 5000}, {"seconds": 0.0}])
def test_what_is_out_of_range_is_refused(values):
    with pytest.raises(OffpathError, match="out of range"):
        osu.OsuSpec(["latency"], [1], **values).check(nodes=2)


def test_one_node_and_unknown_tests_are_refused(offpath):
    done = offpath("bench", "osu", "--nodes", "1")
    assert done.returncode == 2 and "at least two nodes" in done.stderr
    done = offpath("bench", "osu", "--tests", "latency,pingpong")
    assert done.returncode == 2 and "'pingpong' is not known" in done.stderr and "mbw_mr" in done.stderr


@pytest.mark.parametrize("dpu", ["local", "remote", "aarch64"])
def test_a_small_session(offpath, namespaces, program, tmp_path, dpu):
    try:
        device_command(dpu, [program], None)
    except OffpathError as error:
        pytest.skip(str(error))
    tests = list(osu.TESTS) if dpu == "local" else ["latency", "mbw_mr"]
    out, picture = tmp_path / "osu.json", tmp_path / "osu.png"
    done = offpath(
        "bench",
        "osu",
        "--dpu",
        dpu,
        "--tests",
        ",".join(tests),
        "--runs",
        "1",
        "--sizes",
        "1,64K",
        "--seconds",
        "0.005",
        "--json",
        str(out),
        *(["--plot", str(picture)] if dpu == "local" else []),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert {(row["test"], row["pair"], row["bytes"]) for row in report["rows"]} == {
        (t, p, b) for t in tests for p in osu.PAIRS for b in (1, 65536)
    }
    assert all(row["value"] > 0 and row["relative_to_host"] > 0 for row in report["rows"])
    assert {row["unit"] for row in report["rows"]} == {"us", "MB/s"}
    assert dpu != "local" or picture.read_bytes().startswith(b"\x89PNG")
    assert "host-dpu" in done.stdout
