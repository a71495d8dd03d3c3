"""The study of bspmm: bounds and gains computed from known numbers, its picture, and one small
real session."""

import json

import pytest

from offpath import bspmm, bspmm_plot, oshmem
from offpath.artifacts import find_artifacts
from offpath.bspmm_names import HOSTED, PHASES, VARIANTS
from offpath.errors import OffpathError


@pytest.fixture
def programs():
    artifacts = find_artifacts()
    try:
        artifacts.program(bspmm.PROGRAM), artifacts.daemon, artifacts.mpi_preload
    except OffpathError as error:
        pytest.skip(str(error))
    return artifacts


def row(variant: str, library: str, total: float, get: float = 0.5, mesh: int = 8) -> dict:
    phases = dict.fromkeys(PHASES, 0.1) | {"get_s": get}
    return {
        "variant": variant,
        "library": library,
        "mesh": mesh,
        "total_s": total,
        **phases,
        "wire_s": 0.2,
        "compute_limit_s": 0.1,
        "runs": [total],
    }


def test_ranks_with_tiles_come_before_the_workers_of_the_devices():
    assert bspmm.node_of_ranks(2, 2, 0) == [0, 0, 1, 1]
    assert bspmm.node_of_ranks(3, 1, 3) == [0, 1, 2, 0, 1, 2]


def test_wire_limit_is_the_busiest_nodes_payload():
    rate = 8 * 10**9  # a byte per nanosecond
    moved = [[0, 5e9, 1e9, 0], [0, 0, 0, 0], [0, 0, 0, 7e9], [0, 0, 0, 0]]
    assert bspmm.wire_seconds(moved, [0, 1, 2, 3], rate) == pytest.approx(7.0)
    # Ranks 0 and 1 are on one node, so data between them cross no link.
    assert bspmm.wire_seconds(moved, [0, 0, 1, 1], rate) == pytest.approx(1.0)
    assert bspmm.wire_seconds(moved, [0, 1, 0, 1], rate) == pytest.approx(12.0)
    assert bspmm.wire_seconds(moved, [0, 1, 2, 3], None) == 0


def test_gains_are_to_the_hosts_own_kernels():
    rows = [
        row("mpi-rma", "host", 5.0),
        row("shmem", "host", 10.0, get=4.0),
        row("shmem-nbi", "host", 8.0),
        row("shmem", "offpath", 9.0),
        row("shmem-nbi", "offpath", 8.08),
        row("offload", "offpath", 4.0, get=0.4),
        row("shmem", "host", 1.0, mesh=16),
    ]
    first, second = bspmm.gains(rows)
    assert first["less_time_than_blocking_percent"] == pytest.approx(60) and first["blocking"] == "shmem"
    assert first["less_time_than_non_blocking_percent"] == pytest.approx(50)
    assert first["less_get_time_than_blocking_percent"] == pytest.approx(90)
    assert first["slowest_to_host"] == pytest.approx(1.01)
    assert second == {"mesh": 16, "slowest_to_host": None}


def test_without_an_openshmem_of_the_host_its_mpi_is_the_reference():
    (line,) = bspmm.gains([row("mpi-rma", "host", 5.0), row("offload", "offpath", 2.0)])
    assert line["blocking"] == "mpi-rma" and line["less_time_than_blocking_percent"] == pytest.approx(60)
    assert "less_time_than_non_blocking_percent" not in line


def test_contenders_are_the_hosts_and_ours(monkeypatch, programs):
    monkeypatch.setattr(oshmem, "program", lambda artifacts, name: "/host/bspmm")
    spec = bspmm.BspmmSpec([8], 64)
    names = [contender.name for contender in bspmm.contenders(programs, spec, across_nodes=True)]
    assert names == [
        "mpi-rma, host",
        "shmem, host",
        "shmem-nbi, host",
        "mpi-rma, offpath",
        "shmem, offpath",
        "shmem-nbi, offpath",
        "offload, offpath",
        "compute-offload, offpath",
    ]
    wide = bspmm.contenders(programs, bspmm.BspmmSpec([8], 64, baselines=True), across_nodes=True)
    assert {"shmem, host+core", "mpi-rma, host+core"} < {contender.name for contender in wide}
    assert [contender.devices_work for contender in wide].count(True) == 1
    monkeypatch.setattr(oshmem, "program", lambda artifacts, name: None)
    assert "shmem, host" not in [
        contender.name for contender in bspmm.contenders(programs, spec, across_nodes=True)
    ]


def test_the_hosts_openshmem_is_kept_to_the_network_between_nodes_only():
    assert oshmem.engine(across_nodes=True).environment == {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "v0"}
    assert oshmem.engine(across_nodes=False).environment == {}
    assert oshmem.engine(True, wide=True).wide and oshmem.engine(True).mca == {"memory": "^patcher"}


@pytest.mark.parametrize(
    "values", [{"runs": 0}, {"tile": 0}, {"sparsity": 1.0}, {"variants": ("fast",)}, {"meshes": [0]}]
)
def test_what_is_out_of_range_is_refused(values):
    with pytest.raises(OffpathError, match="out of range|not known"):
        bspmm.BspmmSpec(**({"meshes": [8], "tile": 64} | values)).check()


@pytest.mark.parametrize("libraries", [("host", "offpath"), ("offpath",)])
def test_picture(tmp_path, libraries):
    rows = [
        row(variant, library, 1.0 + mesh, mesh=mesh)
        for mesh in (8, 16)
        for library in libraries
        for variant in (VARIANTS if library == "offpath" else HOSTED)
    ]
    picture = tmp_path / "p.png"
    bspmm_plot.draw({"rows": rows, "tile": 64, "runs": 3, "lab": {"description": "4 nodes"}}, picture)
    assert picture.stat().st_size > 20000


def test_a_small_session(offpath, namespaces, programs, tmp_path):
    report, picture = tmp_path / "b.json", tmp_path / "b.png"
    done = offpath(
        "study",
        "bspmm",
        "--nodes",
        "2",
        "--mesh",
        "4",
        "--tile",
        "64",
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
    at = {(row["variant"], row["library"]): row for row in found["rows"]}
    assert {(variant, "offpath") for variant in VARIANTS} <= set(at)
    for line in at.values():
        assert line["verified"] and line["total_s"] > 0 and sum(line["units_of"]) == line["units"] == 10
        # The sum of a rank's phases is at most the time of the slowest rank.
        assert sum(line[phase] for phase in PHASES) <= 1.05 * line["total_s"]
    assert at["compute-offload", "offpath"]["ranks"] == 4 and at["offload", "offpath"]["ranks"] == 2
    assert found["gains"] and picture.exists()
