"""Values computed from measurements: medians, ratios, differences, the limit of the wire, overlap."""

from dataclasses import replace

import pytest

from offpath import bench, compare, metrics, staging, stats, twins
from offpath.errors import OffpathError
from offpath.lab import mpi, perftest
from offpath.lab.cluster import LabSpec
from offpath.lab.network import Link


def record(engine, run, failed=False, results=None, output=(), **measurements):
    return {
        "engine": engine,
        "run": run,
        "failed": failed,
        "exit_code": int(failed),
        "measurements": measurements,
        "results": results or {},
        "output": list(output),
    }


def test_last_json_object():
    assert metrics.last_json_object('hello\n{"a": 1}\n\n') == {"a": 1}
    assert metrics.last_json_object('{"a": 1}\nbye\n') is None
    assert metrics.last_json_object("{broken\n") is None
    assert metrics.last_json_object("") is None


def test_measurements_and_results_are_told_apart():
    report = {
        "total_s": 1.5,
        "overlap_percent": 90,
        "bandwidth_Bps": 1e9,
        "ranks": 4,
        "checksum": 1.25,
        "verified": True,
        "program": "x",
    }
    assert set(metrics.measurements(report)) == {"total_s", "overlap_percent", "bandwidth_Bps"}
    assert metrics.results(report) == {"ranks": 4, "checksum": 1.25, "verified": True, "program": "x"}
    assert (
        metrics.is_time("total_s")
        and not metrics.is_time("flops_per_s")
        and not metrics.is_time("overlap_percent")
    )


def test_medians_and_ratios_leave_failed_runs_out():
    records = [record("host", i, wall_s=w) for i, w in enumerate((4.0, 2.0, 3.0))]
    records += [record("offpath", 0, wall_s=1.5), record("offpath", 1, failed=True, wall_s=100.0)]
    summary = compare.summarize(records, [mpi.HOST, mpi.OFFPATH])["wall_s"]
    assert summary["host"] == {"median": 3.0, "low": 2.0, "high": 4.0, "count": 3, "ratio": 1.0}
    assert (
        summary["offpath"]["median"] == 1.5
        and summary["offpath"]["ratio"] == 0.5
        and summary["offpath"]["count"] == 1
    )


def test_differences_name_the_run_and_the_value():
    records = [
        record("host", 0, results={"sum": 1, "error": 4.0e-16}, output=["a", "b"]),
        record("offpath", 0, results={"sum": 2, "error": 3.9e-16}, output=["a", "b"]),
    ]
    (line,) = compare.differences(records)
    assert "offpath, run 1" in line and "sum" in line and "2" in line
    records[1]["results"]["sum"] = 1
    records[1]["output"] = ["a", "c"]
    assert "text" in compare.differences(records)[0]
    records[1]["output"] = ["a", "b"]
    assert compare.differences(records) == []


def test_engines_are_chosen_by_name(tmp_path):
    program = [str(tmp_path / "program")]
    assert [e.name for e in compare.choose_engines(None, "none", program)] == ["host", "offpath"]
    assert {"host+thread", "host+core"} < {e.name for e in compare.choose_engines(None, "all", program)}
    assert [e.name for e in compare.choose_engines("offpath,host", "all", program)] == ["offpath", "host"]
    with pytest.raises(OffpathError, match="hots"):
        compare.choose_engines("hots", "none", program)


def test_mpich_is_a_rival_of_programs_that_are_made_with_it_too(tmp_path, monkeypatch, capfd):
    program = tmp_path / "program"
    ours = ["host", "offpath", "host+thread", "host+core"]
    monkeypatch.setattr(twins.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert [e.name for e in compare.choose_engines(None, "rivals", [str(program)])] == ours
    assert "mpich, mpich+core+thread: left out, since there is no program-mpich" in capfd.readouterr().err
    for options in (("host,mpich", "none"), (None, "mpich+core+thread")):
        with pytest.raises(OffpathError, match="mpich.* cannot run: there is no program-mpich"):
            compare.choose_engines(*options, [str(program)])
    (tmp_path / "program-mpich").touch()
    assert [e.name for e in compare.choose_engines(None, "rivals", [str(program)])] == [
        *ours,
        "mpich",
        "mpich+core+thread",
    ]
    with pytest.raises(OffpathError, match="mpiexec.mpich is not installed"):
        monkeypatch.setattr(twins.shutil, "which", lambda name: None)
        compare.choose_engines("mpich", "none", [str(program)])


def test_the_rivals_of_a_program_of_mpich_are_settings_of_mpich(monkeypatch):
    monkeypatch.setattr(twins.mpi_library, "of_program", lambda program: "mpich")
    assert [e.name for e in compare.choose_engines(None, "rivals", ["program"])] == [
        "host",
        "offpath",
        "host+core",
        "host+core+thread",
    ]


def test_an_engine_with_more_than_its_library_is_compared_with_the_library_too():
    engines = [mpi.HOST, mpi.ENGINES["mpich"], mpi.ENGINES["mpich+core+thread"]]
    records = [
        {"engine": e.name, "failed": False, "measurements": {"total_s": s}}
        for e, s in zip(engines, (4.0, 2.0, 1.0), strict=True)
    ]
    found = compare.summarize(records, engines)["total_s"]
    assert (found["mpich+core+thread"]["ratio"], found["mpich+core+thread"]["ratio_to_alone"]) == (0.25, 0.5)
    assert found["mpich"]["ratio"] == 0.5 and "ratio_to_alone" not in found["mpich"]


def test_wire_limit_is_what_the_busiest_node_moves():
    mega, rate = 2**20, 8 * 10**9  # a byte per nanosecond
    assert bench.wire_seconds("ialltoall", mega, 2, 1, rate) == pytest.approx(mega * 1e-9)
    assert bench.wire_seconds("ialltoallv", mega, 4, 2, rate) == pytest.approx(2 * 2 * 3 * mega * 1e-9)
    assert bench.wire_seconds("iallgather", mega, 4, 2, rate) == pytest.approx(2 * 3 * mega * 1e-9)
    assert bench.wire_seconds("ibcast", mega, 4, 2, rate) == pytest.approx(mega * 1e-9)
    assert bench.wire_seconds("ibarrier", mega, 4, 1, rate) == 0
    assert bench.wire_seconds("igatherv", mega, 4, 2, rate) == pytest.approx(2 * 3 * mega * 1e-9)
    assert bench.wire_seconds("ireduce_scatter_block", mega, 2, 2, rate) == pytest.approx(2 * mega * 1e-9)
    assert bench.wire_seconds("ineighbor_alltoallv", mega, 2, 1, rate) == pytest.approx(mega * 1e-9)
    assert bench.wire_seconds("ineighbor_allgather", mega, 4, 1, rate) == pytest.approx(2 * mega * 1e-9)
    assert bench.wire_seconds("ialltoall", mega, 1, 4, rate) == 0
    assert bench.wire_seconds("ialltoall", mega, 4, 1, None) == 0


def test_every_operation_has_a_wire_limit():
    for operation in bench.OPERATIONS:
        assert bench.wire_seconds(operation, 1024, 2, 1, 8 * 10**9) >= 0


def test_overlap_is_as_osu_defines_it():
    assert bench.overlap_percent(1.0, 1.0, 1.0) == 100
    assert bench.overlap_percent(1.0, 1.0, 2.0) == 0
    assert bench.overlap_percent(1.0, 1.0, 1.25) == 75
    assert bench.overlap_percent(1.0, 1.0, 3.0) == 0


def test_environment_says_where_numbers_come_from():
    found = stats.environment()
    assert found["kernel"] and found["cpu"] and "Open MPI" in found["mpi"]


def test_staging_takes_medians_and_compares_with_the_slower_link():
    runs = [
        {"back_end": "map", "rows": [{"bytes": 4, "window": 64, "latency_s": s, "bandwidth_Bps": 1 / s}]}
        for s in (4.0, 1.0, 2.0)
    ]
    (row,) = staging.rows({"direct": runs})
    assert (row["path"], row["bytes"], row["latency_s"], row["bandwidth_Bps"], row["back_end"]) == (
        "direct",
        4,
        2.0,
        0.5,
        "map",
    )
    lab = LabSpec(link=Link(10**9), pcie=Link(4 * 10**9), dpu="remote")
    assert (
        staging.slowest_link(lab) == 10**9 and staging.slowest_link(replace(lab, pcie=Link(10**8))) == 10**8
    )
    assert staging.slowest_link(LabSpec(link=Link(None))) is None
    assert [engine.environment for engine in staging.engines(lab)] == [{}, {}]
    assert staging.engines(LabSpec())[1].environment == {"OFFPATH_BACK_END": "staged"}


def test_bandwidth_is_read_from_what_the_perf_test_prints():
    text = (
        "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
        "  50,3.996,23982.062,23982.062,160.0,200.5,42,42\n"
    )
    assert perftest.parse(text) == 200.5 * 2**20
    with pytest.raises(OffpathError, match="no bandwidth"):
        perftest.parse("connection refused")
