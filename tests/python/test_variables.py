"""The front end reports environment variables that no part of offpath reads. The table of all others agrees
with the sources, with the page in docs/, and with what `offpath info` shows."""

import json
import re
from pathlib import Path

import pytest

from offpath import variable_checks, variables
from offpath.errors import OffpathError

SOURCE = Path(__file__).resolve().parents[2]

ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("mpi_finalize_test", []), ("offpath-bench-shmem", ["--seconds", "0.001", "--sizes", "8"])],
)
def test_a_misspelt_variable_is_named_once_with_the_one_that_is_meant(offpath, build, program, arguments):
    try:
        path = build.program(program)
    except OffpathError as error:
        pytest.skip(str(error))
    done = offpath(
        "run",
        "--mpi",
        "openmpi",
        "--",
        "mpirun",
        "-n",
        "2",
        str(path),
        *arguments,
        **ROOT,
        OFFPATH_MINBYTES="0",
        OFFPATH_HOME="/opt/offpath",
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count(
            "OFFPATH_MINBYTES is set, and nothing reads it; is OFFPATH_MIN_BYTES meant? [OFP-0413]\n"
        )
        == 1
    ), done.stderr
    assert (
        done.stderr.count("OFFPATH_HOME is set, and nothing reads it [OFP-0413]\n") == 1
        and done.stderr.count("nothing reads it") == 2
    ), done.stderr


def _read_by_sources() -> set[str]:
    found = set()
    for folder in ("src", "frontends", "apps", "bench", "python"):
        for path in (SOURCE / folder).rglob("*"):
            if path.suffix in (".cpp", ".h", ".c", ".py"):
                found |= set(re.findall(r'"(OFFPATH(?:_[A-Z0-9]+)+)"', path.read_text()))
    found |= set(re.findall(r"\$\{(OFFPATH_\w+):-", (SOURCE / "cmake/offpath-clang.in").read_text()))
    return found | {"OFFPATH"}


def test_the_table_has_the_variables_that_the_sources_read():
    names = [variable.name for variable in variables.table()]
    assert names == sorted(set(names))
    assert set(names) == _read_by_sources()


def test_the_page_is_what_the_generator_writes_and_its_links_lead_somewhere():
    assert (SOURCE / "docs/variables.md").read_text() == variables.page()
    for variable in variables.table():
        if not variable.page:
            continue
        name, _, anchor = variable.page.partition("#")
        text = (SOURCE / "docs" / name).read_text()
        assert variable.name in text, f"{name} says nothing of {variable.name}"
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, f"{name} has no {anchor}"


def test_info_shows_values_and_where_they_come_from(offpath):
    done = offpath("info", "--variables", "--json", OFFPATH_MIN_BYTES="1M")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["variables"]}
    assert rows["OFFPATH_MIN_BYTES"]["value"] == "1M" and rows["OFFPATH_MIN_BYTES"]["from"] == "environment"
    assert rows["OFFPATH_P2P"]["value"] == "remote" and rows["OFFPATH_P2P"]["from"] == "default"
    assert rows["OFFPATH_MIN_BYTES"]["control_variable"] == "offpath_min_bytes"
    assert rows["OFFPATH_CLANG"]["control_variable"] is None
    assert "OFFPATH_LAB_INSIDE" not in rows
    assert "OFFPATH_MIN_BYTES" in offpath("info", "--variables").stdout
    wrong = offpath("info", "--variables", "--nodes", "2")
    assert wrong.returncode == 2 and "--variables shows no devices" in wrong.stderr


WRONG = {
    "OFFPATH": "maybe",
    "OFFPATH_BACK_END": "foo",
    "OFFPATH_IDLE_EXIT": "soon",
    "OFFPATH_LOST_AFTER_S": "4000",
    "OFFPATH_MIN_BYTES": "64KB",
    "OFFPATH_OPS": "ibcast,foo",
    "OFFPATH_PROXIES": "0",
    "OFFPATH_REGION_SECONDS": "2s",
    "OFFPATH_DEVICE_CPUS": "1-",
    "OFFPATH_TARGET_DEVICES": "/nonexistent",
}


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_wrong_value_is_refused_before_anything_starts(name, value):
    with pytest.raises(OffpathError, match=re.escape(f"{name}={value}: ")) as caught:
        variable_checks.check({name: value})
    assert caught.value.hint.startswith("use ")
    variable_checks.check({name: ""})


RIGHT = {
    "OFFPATH": "off",
    "OFFPATH_BACK_END": "map",
    "OFFPATH_IDLE_EXIT": "0.5",
    "OFFPATH_LOST_AFTER_S": "0",
    "OFFPATH_MIN_BYTES": "64k",
    "OFFPATH_OPS": "default,blocking,bcast,ialltoall",
    "OFFPATH_PROXIES": "2",
    "OFFPATH_REGION_SECONDS": "2",
    "OFFPATH_DEVICE_CPUS": "1,4-7",
    "OFFPATH_TARGET_DEVICES": "/tmp,node=/nonexistent,10.0.0.1:99",
    "OFFPATH_NO_SUCH_VARIABLE": "x",
}


def test_right_values_pass():
    variable_checks.check(RIGHT)


def test_defaults_of_the_table_are_accepted():
    for variable in variables.table():
        first = variable.default.partition(";")[0].strip()
        if variable.check and re.fullmatch(r"\d+[KMG]?|on|off|auto|remote|host|warn|default|all", first):
            variable_checks.check_one(variable, first)


def test_no_command_starts_a_job_with_a_wrong_value(offpath, tmp_path):
    started = tmp_path / "started"
    for line in (["run", "--mpi", "none"], ["lab", "run"], ["lab", "compare"], ["advise"]):
        done = offpath(*line, "--", "touch", str(started), OFFPATH_BACK_END="foo")
        assert done.returncode == 2 and "OFFPATH_BACK_END=foo" in done.stderr, (line, done.stderr)
        assert "use auto, map, cma, staged" in done.stderr and not started.exists()
    done = offpath("run", "--proxies", "0", "--", "touch", str(started))
    assert done.returncode == 2 and "'--proxies'" in done.stderr and not started.exists()
    done = offpath("control", "ops", "ibcast,foo", "--file", str(started))
    assert done.returncode == 2 and "'foo' is no operation" in done.stderr and not started.exists()
    assert offpath("control", "off", "--file", str(started)).stderr.startswith("offpath: told ")
