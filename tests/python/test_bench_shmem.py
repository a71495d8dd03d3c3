"""OpenSHMEM's benchmark: how rows are made, which PEs take part, and one small real session."""

import json

import pytest

from offpath import bench_shmem, oshmem
from offpath.artifacts import find_artifacts
from offpath.errors import OffpathError

FIELDS = [
    "op",
    "memory",
    "where",
    "bytes",
    "latency_s",
    "bandwidth_Bps",
    "messages_per_s",
    "overlap_percent",
    "engine",
    "runs",
]


def said(
    op: str, engine: str, latency: float, size: int = 8, memory: str = "heap", where: str = "inter"
) -> dict:
    row = {
        "op": op,
        "memory": memory,
        "where": where,
        "bytes": size,
        "engine": engine,
        "latency_s": latency,
        "messages_per_s": 1 / latency,
    }
    return row | (
        {"bandwidth_Bps": size / latency, "overlap_percent": 50.0} if op in bench_shmem.TRANSFERS else {}
    )


def test_rows_are_medians_and_have_every_field():
    rows = bench_shmem.rows(
        [said("put", "host", latency) for latency in (3.0, 1.0, 2.0)] + [said("add", "offpath", 4.0)]
    )
    assert [list(row) for row in rows] == [FIELDS] * 2
    assert rows[0]["latency_s"] == 2.0 and rows[0]["bandwidth_Bps"] == 4.0 and len(rows[0]["runs"]) == 3
    assert (
        rows[1]["bandwidth_Bps"] is None
        and rows[1]["overlap_percent"] is None
        and rows[1]["messages_per_s"] == 0.25
    )


def test_rows_of_one_point_stand_together():
    found = [
        said(op, engine, 1.0, size, memory, where)
        for engine in ("offpath", "host")
        for where in ("inter", "intra")
        for memory in ("static", "heap")
        for size in (64, 8)
        for op in ("get", "put")
    ]
    rows = bench_shmem.rows(found)
    assert [row["engine"] for row in rows] == ["host", "offpath"] * 16
    assert [row["op"] for row in rows] == ["put"] * 16 + ["get"] * 16
    assert (
        [row["bytes"] for row in rows[:4]] == [8, 8, 64, 64]
        and rows[0]["where"] == "intra"
        and rows[0]["memory"] == "heap"
    )


@pytest.mark.parametrize(
    "values",
    [
        {"operations": ["send"]},
        {"memories": ["stack"]},
        {"sizes": [2**23]},
        {"runs": 0},
        {"engines": ["other"]},
    ],
)
def test_what_is_not_known_is_refused(values):
    usual = {
        "operations": ["put"],
        "memories": ["heap"],
        "places": ["inter"],
        "sizes": [8],
        "engines": ["host"],
    }
    bench_shmem.ShmemSpec(**usual).check(2)
    with pytest.raises(OffpathError, match="not known|out of range"):
        bench_shmem.ShmemSpec(**(usual | values)).check(2)
    with pytest.raises(OffpathError, match="two"):
        bench_shmem.ShmemSpec(**usual).check(1)


def test_the_hosts_library_gets_all_cores():
    engine = bench_shmem.engine_of("host", across_nodes=True)
    assert engine.wide and not engine.offload and engine.environment["UCX_TLS"] == "tcp,self"
    ours = bench_shmem.engine_of("offpath", across_nodes=True)
    assert ours.offload and not ours.front_end


def test_a_small_session(offpath, namespaces, tmp_path):
    artifacts = find_artifacts()
    try:
        artifacts.program(bench_shmem.PROGRAM), artifacts.daemon
    except OffpathError as error:
        pytest.skip(str(error))
    report = tmp_path / "s.json"
    done = offpath(
        "bench",
        "shmem",
        "--runs",
        "1",
        "--sizes",
        "8,64K",
        "--seconds",
        "0.005",
        "--json",
        str(report),
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text())["rows"]
    engines = [
        name
        for name in bench_shmem.ENGINES
        if name == "offpath" or oshmem.program(artifacts, bench_shmem.PROGRAM)
    ]
    assert len(rows) == len(engines) * 2 * 2 * (2 * 2 + 3)
    for row in rows:
        assert list(row) == FIELDS and row["latency_s"] > 0
        assert row["bandwidth_Bps"] is None or row["bandwidth_Bps"] > 0
        assert row["overlap_percent"] is None or 0 <= row["overlap_percent"] <= 100
