"""`offpath study reproduce`, and the page that it writes."""

import json

import pytest

from conftest import SOURCE_ROOT
from offpath.errors import OffpathError
from offpath.models import overlap
from offpath.reproduction import by_measurement, by_simulation, page
from offpath.reproduction.row import Kind, Paper, Published, Row

PAGE = SOURCE_ROOT / "docs/reproduction.md"


def test_the_page_is_what_the_generator_writes(offpath, tmp_path):
    """Models, simulations and stored results give the same figures in every run. After a change of these, or
    of the engine, write the page again: offpath study reproduce --page docs/reproduction.md"""
    found, written = tmp_path / "f.json", tmp_path / "page.md"
    done = offpath("study", "reproduce", f"--json={found}", f"--page={written}")
    assert done.returncode == 0, done.stderr
    assert written.read_text() == PAGE.read_text()
    rows = json.loads(found.read_text())["rows"]
    assert {row["kind"] for row in rows} >= {Kind.MODEL, Kind.SIMULATION}
    for row in rows:
        assert abs(row["error"]) <= 0.2 or row["why"], row["what"]


def test_errors_are_distances_to_the_papers_figure():
    assert Published.exactly(10).error(12) == pytest.approx(0.2)
    assert Published.at_least(25).error(30) == 0
    assert Published.at_least(25).error(20) == pytest.approx(-0.2)
    assert Published(75, 78).error(76) == 0
    assert Published(75, 78).error(100) == pytest.approx(100 / 78 - 1)
    assert Published.at_most(0).error(-3) == 0 and str(Published.at_most(0, "%")) == "at most 0 %"
    assert str(Published(75, 78, "%")) == "75 to 78 %" and str(Published.at_least(2)) == "at least 2"


def test_a_row_says_where_we_differ_only_if_we_do():
    right = Row(
        Paper.MANUAL, "4.1", "a figure", Published.exactly(2, "s"), 2.0, Kind.MODEL, "bound", "because"
    )
    wrong = Row(
        Paper.MANUAL, "4.1", "a figure", Published.exactly(2, "s"), 3.0, Kind.MODEL, "bound", "because"
    )
    assert "because" not in page.render([right], {})
    text = page.render([wrong], {"x": "offpath bench x"})
    assert "| 4.1 | a figure | 2 s | 3 s | +50 % | model: bound |" in text and "| because |" in text
    assert "offpath bench x" in text and "0 are within 20 %" in text


def test_the_crossover_is_where_the_excess_ends_to_grow():
    assert by_simulation.last_growth((1, 2, 4, 8), [1, 2, 3, 3]) == 4
    assert by_simulation.last_growth((1, 2, 4, 8), [1, 2, 3, 4]) == 8
    assert by_simulation.last_growth((1, 2, 4, 8), [1, 1, 3, 4]) == 1


def test_every_stored_result_is_used_and_names_its_command():
    source = (SOURCE_ROOT / "python/offpath/reproduction/by_measurement.py").read_text()
    for name in by_measurement.names():
        assert name in source or name.startswith("alltoall-")
    for command in by_measurement.commands().values():
        assert command.startswith(("offpath ", "miniMD "))


def test_a_wrong_stored_result_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(by_measurement, "STORED", tmp_path)
    (tmp_path / "x.json").write_text('{"rows": []}')
    with pytest.raises(OffpathError, match=r"x\.json: not a stored result: KeyError\('command'\)"):
        by_measurement.read("x")


def test_the_overlap_model_holds_for_what_was_measured():
    """The progress of 1 MiB, and the other times of 4 MiB, give the time of 4 MiB beside a computation."""
    rows = {(row["op"], row["engine"], row["bytes"]): row for row in by_measurement.read("overlap")["rows"]}
    for (op, engine, size), known in rows.items():
        asked = rows.get((op, engine, 4 * size))
        if asked is None:
            continue
        progress = overlap.progress_from(
            known["pure_s"], known["compute_s"], known["total_s"], known["post_s"]
        )
        said = overlap.Overlap(asked["pure_s"], asked["post_s"], progress).total_s(asked["compute_s"])
        assert said == pytest.approx(asked["total_s"], rel=0.02 if engine == "offpath" else 0.1), (op, engine)
