"""Files of other versions, older and newer: readers name both versions and what to do, and read nothing."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import trace_files
from offpath import __version__, profiles, signatures, tracing, tuning_table
from offpath.errors import OffpathError
from offpath.tracing import files


def table(folder, version):
    path = folder / "table.json"
    path.write_text(json.dumps({"offpath_tuning": version, "rows": []}))
    tuning_table.read(path)


def signature(folder, version):
    path = folder / "signature.json"
    path.write_text(json.dumps({"offpath_signature": version, "another": "layout"}))
    signatures.read(path)


def profile(folder, version):
    (folder / "rank-0.json").write_text(json.dumps({"format": "offpath-profile", "version": version}))
    profiles.read(folder)


def trace(folder, version):
    trace_files.write(folder, 0, "n", [], [(7, "main", trace_files.span(1, 2, "wait"))])
    (path,) = tracing.find(folder)
    data = bytearray(path.read_bytes())
    data[7:8] = b"%d" % version
    path.write_bytes(data)
    files.read_all(folder)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("read", [table, signature, profile, trace])
def test_files_of_other_versions_are_refused_by_name(tmp_path, read, version):
    with pytest.raises(OffpathError, match=f"version {version}; this command reads version 1") as caught:
        read(tmp_path, version)
    assert str(tmp_path) in str(caught.value) and "with the offpath that wrote it" in str(caught.value.hint)


def test_the_version_is_the_same_everywhere(offpath, build):
    source = Path(__file__).resolve().parents[2]
    found = re.search(r"project\(offpath VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text())
    assert found and found[1] == __version__
    assert tomllib.loads((source / "pyproject.toml").read_text())["project"]["version"] == __version__
    assert offpath("--version").stdout == f"offpath {__version__}\n"
    for program in ("offpathd", "offpath-bench-mpi"):
        line = [str(build.program(program)), "--version"]
        said = subprocess.run(line, capture_output=True, text=True, timeout=20)
        assert said.returncode == 0 and said.stdout.split()[-1] == __version__
