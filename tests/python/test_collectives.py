"""The table of collectives: everything that follows from it agrees with it, and no other file lists them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from offpath import bench, collectives, tune

ROOT = Path(__file__).resolve().parents[2]
ROWS = collectives.read()
# These numbers travel between ranks that may have different releases of the front end.
NUMBERS = [
    "alltoall",
    "alltoallv",
    "allgather",
    "allgatherv",
    "bcast",
    "barrier",
    "allreduce",
    "reduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "alltoallw",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
]
# A row that only these tests have.
ROW = "alltonext vector 128K sync,tune broadcast buffer buf, int count, type datatype, comm comm\n"


def test_numbers_stay():
    assert [row.name for row in ROWS][: len(NUMBERS)] == NUMBERS


@pytest.mark.parametrize(
    "row",
    [
        "iscan",
        "scan words 64K - scan comm comm",
        "scan vector 64 - scan comm comm",
        "scan vector - - scan comm comm",
        "scan - 64K - scan comm comm",
        "scan vector 64K slow scan comm comm",
        "scan vector 64K tune - comm comm",
        "scan vector 64K - scan comm comm\nscan vector 64K - scan comm comm",
    ],
)
def test_a_row_that_makes_no_sense_is_refused(tmp_path, row):
    table = tmp_path / "table.txt"
    table.write_text(row + "\n")
    with pytest.raises(collectives.TableError, match=re.escape(str(table))):
        collectives.read(table)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text(collectives.TABLE.read_text() + ROW)
    return path


def generate(script: str, *arguments: Path | str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, ROOT / script, *arguments], env=environment, check=True)


def test_a_row_gives_the_operation_and_its_traits(table, tmp_path):
    header = tmp_path / "ops.h"
    generate("frontends/mpi/runtime/generate_operations.py", table, header)
    text = header.read_text()
    assert f"    ialltonext,\n}};\n\ninline constexpr std::array<OpTraits, {len(ROWS) + 1}>" in text
    assert '{"ialltonext", 131072, Counted::vector, true},' in text


def test_a_row_gives_the_calls_in_all_forms(table, tmp_path):
    header, calls = tmp_path / "mpi.h", tmp_path / "calls.txt"
    calls.write_text("Wait(request& request, status* status)\n")
    header.write_text("int MPI_Wait(); int MPI_Ialltonext(); int MPI_Alltonext(); int MPIX_Alltonext_init();")
    files = [tmp_path / name for name in ("c.cpp", "fortran.cpp", "exports.map")]
    generate("frontends/mpi/calls/generate.py", "openmpi", calls, table, header, *files)
    exports = files[2].read_text()
    for call in ("MPI_Wait", "MPI_Ialltonext", "MPI_Alltonext", "MPIX_Alltonext_init", "mpi_ialltonext_"):
        assert f"    {call};\n" in exports
    assert "MPI_Bcast" not in exports  # this MPI does not have it
    assert "MPI_Ialltonext(choice(buf), *count, MPI_Type_f2c(*datatype)" in files[1].read_text()


def test_a_row_gives_the_benchmark(table, tmp_path):
    source = tmp_path / "rows.cpp"
    generate("bench/mpi/generate.py", table, source)
    assert '{"ialltonext", shapes::broadcast, false,' in source.read_text()
    assert (
        "MPI_Ialltonext(op.buffer(), op.count(), op.type(), op.comm(), add(requests));" in source.read_text()
    )


def test_the_command_has_what_the_rows_say():
    shaped = [row for row in ROWS if row.shape]
    assert (*(row.op for row in shaped), "isend") == bench.OPERATIONS
    assert tuple(row.op for row in shaped if row.name != "barrier") == tune.OPERATIONS
    assert "ialltoallv" in tune.DEFAULT_OPERATIONS and "iscan" not in tune.DEFAULT_OPERATIONS


def test_no_other_file_lists_collectives():
    """Code that names many operations would be another list that a new row must be added to."""
    operations = re.compile(rf"(?<!\w)(?:{'|'.join(row.op for row in ROWS)})\b")
    lists = {}
    for folder in ("src", "frontends", "bench", "python", "cmake", "lab"):
        for file in (ROOT / folder).rglob("*"):
            if (
                file.suffix in (".h", ".cpp", ".c", ".py", ".cmake", ".txt")
                and file.name != "collectives.txt"
            ):
                named = set(operations.findall(file.read_text()))
                if len(named) > 4:
                    lists[str(file.relative_to(ROOT))] = sorted(named)
    assert lists == {}


def calls_of(cell: str) -> list[str]:
    """Returns the calls in a cell of the table. MPI_Iallgather(v) is two calls."""
    calls = []
    for name, endings in re.findall(r"`MPI_I(\w+)(?:\(([\w,]+)\))?`", cell):
        calls += [name] + [name + ending for ending in filter(None, endings.split(","))]
    return calls


def test_the_page_says_when_each_goes_to_the_device():
    page = (ROOT / "docs/mpi.md").read_text()
    section = page.partition("## What goes to the device")[2].partition("\n## ")[0]
    said = {}
    for call, when in re.findall(r"^\| (`MPI_I.*?) \| (.*) \|$", section, re.M):
        for name in calls_of(call):
            assert name not in said, f"MPI_I{name} stands there twice"
            said[name] = when
    assert set(said) == {row.name for row in ROWS}
    start = {
        "pair": "a pair's",
        "each": "per ",
        "blocks": ("all blocks", "the whole"),
        "vector": ("it ", "the v"),
    }
    for row in ROWS:
        if row.has_data:
            assert said[row.name].endswith(f"at least {row.switch_over >> 10} KiB"), row.name
            assert said[row.name].startswith(start[row.bytes]), row.name
        else:
            assert said[row.name] == "`OFFPATH_OPS` names it"


def test_the_pages_have_every_call_and_every_builder():
    header = (ROOT / "include/offpath/collectives.h").read_text()
    api = "\n".join(re.findall(r"^### .*", (ROOT / "docs/api.md").read_text(), re.M))
    declared = set(re.findall(r"\boffpath_i\w+(?=\()", header))
    assert len(declared) > 10
    assert declared <= set(re.findall(r"\w+", api))

    builders = set(
        re.findall(r"^Schedule (\w+)\(", (ROOT / "src/collectives/collectives.h").read_text(), re.M)
    )
    page = (ROOT / "docs/schedules.md").read_text()
    section = page.partition("## The collectives")[2].partition("\n## ")[0]
    shown = set(
        re.findall(r"`(\w+)`", re.sub(r"`alltoall\(v\)_(\w+)`", r"`alltoall_\1` `alltoallv_\1`", section))
    )
    assert len(builders) > 10
    assert builders <= shown
